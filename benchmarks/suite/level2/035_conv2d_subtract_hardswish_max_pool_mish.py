"""KernelBench level 2, 35_Conv2d_Subtract_HardSwish_MaxPool_Mish: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, less: float, window: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel)
        self.less = less
        self.pool = nn.MaxPool2d(window)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return f.mish(self.pool(f.hardswish(self.conv(x) - self.less)))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 64, 128, 128)]


def get_init_inputs() -> list[object]:
    return [64, 128, 3, 0.5, 2]
