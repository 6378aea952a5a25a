"""KernelBench level 2, 52_Conv2d_Activation_BatchNorm: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel)
        self.norm = nn.BatchNorm2d(maps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        out: torch.Tensor = self.norm(torch.tanh(f.softplus(y)) * y)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(64, 64, 128, 128)]


def get_init_inputs() -> list[object]:
    return [64, 128, 3]
