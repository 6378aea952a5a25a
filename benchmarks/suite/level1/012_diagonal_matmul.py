"""KernelBench level 1, 12_Matmul_with_diagonal_matrices_: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return diagonal.unsqueeze(1) * matrix


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(4096), torch.rand(4096, 4096)]


def get_init_inputs() -> list[object]:
    return []
