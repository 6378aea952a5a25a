"""KernelBench level 2, 69_Conv2d_HardSwish_ReLU: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(f.hardswish(self.conv(x)))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 8, 128, 128)]


def get_init_inputs() -> list[object]:
    return [8, 64, 3]
