"""KernelBench level 2, 71_Conv2d_Divide_LeakyReLU: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, divisor: float) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel)
        self.divisor = divisor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return f.leaky_relu(self.conv(x) / self.divisor, negative_slope=0.01)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 8, 128, 128)]


def get_init_inputs() -> list[object]:
    return [8, 64, 3, 2]
