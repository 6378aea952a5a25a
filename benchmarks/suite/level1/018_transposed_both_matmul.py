"""KernelBench level 1, 18_Matmul_with_transposed_both: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return left.T @ right.T


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(8192, 2048), torch.rand(4096, 8192)]


def get_init_inputs() -> list[object]:
    return []
