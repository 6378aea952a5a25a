"""KernelBench level 2, 9_Matmul_Subtract_Multiply_ReLU: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int, less: float, times: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.less = less
        self.times = times

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu((self.linear(x) - self.less) * self.times)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(1024, 8192)]


def get_init_inputs() -> list[object]:
    return [8192, 8192, 2.0, 1.5]
