"""KernelBench level 2, 56_Matmul_Sigmoid_Sum: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sum(torch.sigmoid(self.linear(x)), dim=1, keepdim=True)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 32768)]


def get_init_inputs() -> list[object]:
    return [32768, 32768]
