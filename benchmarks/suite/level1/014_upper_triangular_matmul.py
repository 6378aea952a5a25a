"""KernelBench level 1, 14_Matmul_for_upper_triangular_matrices: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return torch.triu(left @ right)


def get_inputs() -> list[torch.Tensor]:
    return [torch.triu(torch.rand(4096, 4096)), torch.triu(torch.rand(4096, 4096))]


def get_init_inputs() -> list[object]:
    return []
