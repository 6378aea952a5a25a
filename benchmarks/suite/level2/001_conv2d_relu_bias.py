"""KernelBench level 2, 1_Conv2D_ReLU_BiasAdd: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, bias_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv(x)) + self.bias


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 64, 128, 128)]


def get_init_inputs() -> list[object]:
    return [64, 128, 3, [128, 1, 1]]
