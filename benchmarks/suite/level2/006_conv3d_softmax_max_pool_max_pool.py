"""KernelBench level 2, 6_Conv3d_Softmax_MaxPool_MaxPool: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, window: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(channels, maps, kernel)
        self.first = nn.MaxPool3d(window)
        self.second = nn.MaxPool3d(window)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.second(self.first(torch.softmax(self.conv(x), dim=1)))
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 3, 16, 32, 32)]


def get_init_inputs() -> list[object]:
    return [3, 16, 3, 2]
