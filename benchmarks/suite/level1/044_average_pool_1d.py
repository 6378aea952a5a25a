"""KernelBench level 1, 44_Average_Pooling_1D: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, window: int, stride: int, padding: int) -> None:
        super().__init__()
        self.pool = nn.AvgPool1d(window, stride, padding)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.pool(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(64, 128, 65536)]


def get_init_inputs() -> list[object]:
    return [8, 1, 4]
