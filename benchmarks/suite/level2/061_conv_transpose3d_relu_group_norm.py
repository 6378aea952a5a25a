"""KernelBench level 2, 61_ConvTranspose3d_ReLU_GroupNorm: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, groups: int, bias: bool) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, maps, kernel, bias=bias)
        self.norm = nn.GroupNorm(groups, maps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.norm(torch.relu(self.conv(x)))
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 64, 32, 32, 32)]


def get_init_inputs() -> list[object]:
    return [64, 128, 3, 8, False]
