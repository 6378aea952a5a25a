"""KernelBench level 1, 42_Max_Pooling_2D: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, window: int, stride: int, padding: int, dilation: int) -> None:
        super().__init__()
        self.pool = nn.MaxPool2d(window, stride, padding, dilation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled: torch.Tensor = self.pool(x)
        return pooled


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(32, 64, 512, 512)]


def get_init_inputs() -> list[object]:
    return [4, 1, 1, 1]
