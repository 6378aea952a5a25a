"""KernelBench level 1, 41_Max_Pooling_1D: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, window: int, stride: int, padding: int, dilation: int, indices: bool) -> None:
        super().__init__()
        self.pool = nn.MaxPool1d(window, stride, padding, dilation, indices)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.pool(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(64, 192, 65536)]


def get_init_inputs() -> list[object]:
    return [8, 1, 4, 3, False]
