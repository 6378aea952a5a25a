"""KernelBench level 2, 41_Gemm_BatchNorm_GELU_ReLU: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.norm = nn.BatchNorm1d(outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(functional.gelu(self.norm(self.linear(x))))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16384, 4096)]


def get_init_inputs() -> list[object]:
    return [4096, 4096]
