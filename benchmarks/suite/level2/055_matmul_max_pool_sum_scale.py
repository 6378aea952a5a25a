"""KernelBench level 2, 55_Matmul_MaxPool_Sum_Scale: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int, window: int, scale: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.pool = nn.MaxPool1d(window)
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sum(self.pool(self.linear(x).unsqueeze(1)).squeeze(1), dim=1) * self.scale


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 32768)]


def get_init_inputs() -> list[object]:
    return [32768, 32768, 2, 0.5]
