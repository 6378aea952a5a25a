"""KernelBench level 2, 76_Gemm_Add_ReLU: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int, bias_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=False)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x) + self.bias)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(1024, 8192)]


def get_init_inputs() -> list[object]:
    return [8192, 8192, [8192]]
