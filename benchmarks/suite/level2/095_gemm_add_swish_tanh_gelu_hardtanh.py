"""KernelBench level 2, 95_Matmul_Add_Swish_Tanh_GELU_Hardtanh: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int, addend_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.addend = nn.Parameter(torch.randn(addend_shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x) + self.addend
        y = torch.tanh(torch.sigmoid(y) * y)
        return functional.hardtanh(functional.gelu(y), -1.0, 1.0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(1024, 8192)]


def get_init_inputs() -> list[object]:
    return [8192, 8192, [8192]]
