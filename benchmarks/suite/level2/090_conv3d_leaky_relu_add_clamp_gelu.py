"""KernelBench level 2, 90_Conv3d_LeakyReLU_Sum_Clamp_GELU: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.conv = nn.Conv3d(channels, maps, kernel)
        self.bias = nn.Parameter(torch.randn(shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = f.leaky_relu(self.conv(x), negative_slope=0.2) + self.bias
        return f.gelu(torch.clamp(y, min=-1.0, max=1.0))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 8, 16, 64, 64)]


def get_init_inputs() -> list[object]:
    return [8, 64, 3, (64, 1, 1, 1)]
