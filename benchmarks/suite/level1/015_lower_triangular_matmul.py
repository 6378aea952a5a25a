"""KernelBench level 1, 15_Matmul_for_lower_triangular_matrices: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return torch.tril(left @ right)


def get_inputs() -> list[torch.Tensor]:
    return [torch.tril(torch.rand(4096, 4096)), torch.tril(torch.rand(4096, 4096))]


def get_init_inputs() -> list[object]:
    return []
