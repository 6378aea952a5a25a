"""KernelBench level 2, 46_Conv2d_Subtract_Tanh_Subtract_AvgPool: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, less: float, again: float, window: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel)
        self.less = less
        self.again = again
        self.pool = nn.AvgPool2d(window)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.pool(torch.tanh(self.conv(x) - self.less) - self.again)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 64, 128, 128)]


def get_init_inputs() -> list[object]:
    return [64, 128, 3, 0.5, 0.2, 2]
