"""KernelBench level 2, 97_Matmul_BatchNorm_BiasAdd_Divide_Swish: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self, inputs: int, outputs: int, eps: float, momentum: float, shape: tuple[int, ...], divisor: float
    ) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.norm = nn.BatchNorm1d(outputs, eps=eps, momentum=momentum)
        self.bias = nn.Parameter(torch.randn(shape))
        self.divisor = divisor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = (self.norm(self.linear(x)) + self.bias) / self.divisor
        out: torch.Tensor = y * torch.sigmoid(y)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(1024, 8192)]


def get_init_inputs() -> list[object]:
    return [8192, 8192, 1e-05, 0.1, (1,), 1.0]
