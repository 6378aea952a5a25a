"""KernelBench level 2, 73_Conv2d_BatchNorm_Scaling: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, scale: float) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel)
        self.norm = nn.BatchNorm2d(maps)
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.norm(self.conv(x)) * self.scale
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 8, 128, 128)]


def get_init_inputs() -> list[object]:
    return [8, 64, 3, 2.0]
