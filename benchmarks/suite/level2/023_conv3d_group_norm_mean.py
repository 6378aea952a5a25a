"""KernelBench level 2, 23_Conv3d_GroupNorm_Mean: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, groups: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(channels, maps, kernel)
        self.norm = nn.GroupNorm(groups, maps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.mean(self.norm(self.conv(x)), dim=(1, 2, 3, 4))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 3, 24, 32, 32)]


def get_init_inputs() -> list[object]:
    return [3, 24, 3, 8]
