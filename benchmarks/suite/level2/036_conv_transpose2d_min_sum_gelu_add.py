"""KernelBench level 2, 36_ConvTranspose2d_Min_Sum_GELU_Add: written from its facts in facts.json."""

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
        more: int,
        shape: tuple[int, ...],
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, maps, kernel, stride, padding, more)
        self.bias = nn.Parameter(torch.randn(shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.min(self.conv(x), dim=1, keepdim=True)[0]
        return f.gelu(torch.sum(y, dim=2, keepdim=True)) + self.bias


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 64, 128, 128)]


def get_init_inputs() -> list[object]:
    return [64, 128, 3, 2, 1, 1, (1, 1, 1)]
