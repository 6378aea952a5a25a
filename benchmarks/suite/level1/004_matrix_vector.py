"""KernelBench level 1, 4_Matrix_vector_multiplication_: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return left @ right


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(2048, 1048576), torch.rand(1048576, 1)]


def get_init_inputs() -> list[object]:
    return []
