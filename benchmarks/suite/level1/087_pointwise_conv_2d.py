"""KernelBench level 1, 87_conv_pointwise_2D: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, 1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.conv(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 64, 1024, 1024)]


def get_init_inputs() -> list[object]:
    return [64, 128]
