"""KernelBench level 2, 13_ConvTranspose3d_Mean_Add_Softmax_Tanh_Scaling: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self, channels: int, maps: int, kernel: int, stride: int, padding: int, scale: float
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, maps, kernel, stride, padding)
        self.bias = nn.Parameter(torch.randn(1, maps, 1, 1, 1))
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.mean(self.conv(x), dim=2, keepdim=True) + self.bias
        return torch.tanh(torch.softmax(y, dim=1)) * self.scale


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 16, 32, 128, 128)]


def get_init_inputs() -> list[object]:
    return [16, 64, 3, 1, 1, 2.0]
