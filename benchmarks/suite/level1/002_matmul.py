"""KernelBench level 1, 2_Standard_matrix_multiplication_: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return left @ right


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(2048, 8192), torch.rand(8192, 4096)]


def get_init_inputs() -> list[object]:
    return []
