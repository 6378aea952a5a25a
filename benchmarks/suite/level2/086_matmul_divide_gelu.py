"""KernelBench level 2, 86_Matmul_Divide_GELU: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int, divisor: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.divisor = divisor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return f.gelu(self.linear(x) / self.divisor)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(1024, 8192)]


def get_init_inputs() -> list[object]:
    return [8192, 8192, 10.0]
