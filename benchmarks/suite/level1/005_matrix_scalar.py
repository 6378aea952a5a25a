"""KernelBench level 1, 5_Matrix_scalar_multiplication: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, factor: float) -> torch.Tensor:
        return x * factor


def get_inputs() -> list[object]:
    return [torch.rand(65536, 16384), 3.14]


def get_init_inputs() -> list[object]:
    return []
