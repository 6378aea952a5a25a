"""KernelBench level 2, 4_Conv2d_Mish_Mish: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return f.mish(f.mish(self.conv(x)))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(64, 64, 256, 256)]


def get_init_inputs() -> list[object]:
    return [64, 128, 3]
