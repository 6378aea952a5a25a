"""KernelBench level 1, 46_Average_Pooling_3D: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, window: int, stride: int, padding: int) -> None:
        super().__init__()
        self.pool = nn.AvgPool3d(window, stride, padding)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.pool(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 32, 128, 128, 256)]


def get_init_inputs() -> list[object]:
    return [3, 2, 1]
