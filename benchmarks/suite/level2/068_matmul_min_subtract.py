"""KernelBench level 2, 68_Matmul_Min_Subtract: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int, constant: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.constant = nn.Parameter(torch.tensor(constant))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.min(self.linear(x), self.constant) - self.constant


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 16384)]


def get_init_inputs() -> list[object]:
    return [16384, 16384, 2.0]
