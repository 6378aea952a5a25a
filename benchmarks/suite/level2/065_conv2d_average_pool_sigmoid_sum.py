"""KernelBench level 2, 65_Conv2d_AvgPool_Sigmoid_Sum: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, window: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel)
        self.pool = nn.AvgPool2d(window)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sum(torch.sigmoid(self.pool(self.conv(x))), dim=(1, 2, 3))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 8, 384, 384)]


def get_init_inputs() -> list[object]:
    return [8, 64, 3, 4]
