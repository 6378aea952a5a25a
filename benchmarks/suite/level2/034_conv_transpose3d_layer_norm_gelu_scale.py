"""KernelBench level 2, 34_ConvTranspose3d_LayerNorm_GELU_Scaling: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(
        self,
        channels: int,
        maps: int,
        kernel: int,
        stride: int,
        padding: int,
        bias: bool,
        eps: float,
        scale: float,
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, maps, kernel, stride, padding, bias=bias)
        self.norm = nn.LayerNorm(maps, eps=eps)
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return f.gelu(self.norm(self.conv(x))) * self.scale


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(32, 32, 16, 32, 32)]


def get_init_inputs() -> list[object]:
    return [32, 64, 4, 2, 1, True, 1e-05, 1.0]
