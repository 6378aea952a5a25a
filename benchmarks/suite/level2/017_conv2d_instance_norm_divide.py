"""KernelBench level 2, 17_Conv2d_InstanceNorm_Divide: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, divisor: float) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel)
        self.norm = nn.InstanceNorm2d(maps)
        self.divisor = divisor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.norm(self.conv(x)) / self.divisor
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 64, 128, 128)]


def get_init_inputs() -> list[object]:
    return [64, 128, 3, 2.0]
