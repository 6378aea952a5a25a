"""KernelBench level 2, 77_ConvTranspose3d_Scale_BatchNorm_GlobalAvgPool: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, scale: float) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, maps, kernel)
        self.scale = scale
        self.norm = nn.BatchNorm3d(maps)
        self.mean = nn.AdaptiveAvgPool3d(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.mean(self.norm(self.conv(x) * self.scale))
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 64, 16, 32, 32)]


def get_init_inputs() -> list[object]:
    return [64, 128, 5, 2.0]
