"""KernelBench level 1, 43_Max_Pooling_3D: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, window: int, stride: int, padding: int, dilation: int) -> None:
        super().__init__()
        self.pool = nn.MaxPool3d(window, stride, padding, dilation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.pool(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 32, 128, 128, 128)]


def get_init_inputs() -> list[object]:
    return [3, 2, 1, 3]
