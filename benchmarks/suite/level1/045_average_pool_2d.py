"""KernelBench level 1, 45_Average_Pooling_2D: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, window: int) -> None:
        super().__init__()
        self.pool = nn.AvgPool2d(window)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.pool(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 64, 2048, 2048)]


def get_init_inputs() -> list[object]:
    return [11]
