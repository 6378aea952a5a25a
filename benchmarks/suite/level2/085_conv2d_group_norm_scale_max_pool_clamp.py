"""KernelBench level 2, 85_Conv2d_GroupNorm_Scale_MaxPool_Clamp: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self,
        channels: int,
        maps: int,
        kernel: int,
        groups: int,
        shape: tuple[int, ...],
        window: int,
        low: float,
        high: float,
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel)
        self.norm = nn.GroupNorm(groups, maps)
        self.scale = nn.Parameter(torch.ones(shape))
        self.pool = nn.MaxPool2d(window)
        self.low = low
        self.high = high

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.clamp(self.pool(self.norm(self.conv(x)) * self.scale), self.low, self.high)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 8, 128, 128)]


def get_init_inputs() -> list[object]:
    return [8, 64, 3, 16, (64, 1, 1), 4, 0.0, 1.0]
