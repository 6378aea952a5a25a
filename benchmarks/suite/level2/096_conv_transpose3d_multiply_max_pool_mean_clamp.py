"""KernelBench level 2, 96_ConvTranspose3d_Multiply_Max_GlobalAvgPool_Clamp: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self, channels: int, maps: int, kernel: int, stride: int, padding: int, scale: float, window: int
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, maps, kernel, stride, padding)
        self.scale = scale
        self.pool = nn.MaxPool3d(window)
        self.mean = nn.AdaptiveAvgPool3d(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.clamp(self.mean(self.pool(self.conv(x) * self.scale)), min=0.0, max=1.0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 3, 16, 32, 32)]


def get_init_inputs() -> list[object]:
    return [3, 16, 3, 2, 1, 0.5, 2]
