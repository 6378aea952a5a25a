"""KernelBench level 2, 48_Conv3d_Scaling_Tanh_Multiply_Sigmoid: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, scale: float, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.conv = nn.Conv3d(channels, maps, kernel)
        self.scale = nn.Parameter(torch.randn(shape) * scale)
        self.bias = nn.Parameter(torch.randn(shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(torch.tanh(self.conv(x) * self.scale) * self.bias)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 3, 16, 64, 64)]


def get_init_inputs() -> list[object]:
    return [3, 16, 3, 2, (16, 1, 1, 1)]
