"""KernelBench level 1, 16_Matmul_with_transposed_A: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return left.T @ right


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(8192, 2048), torch.rand(8192, 4096)]


def get_init_inputs() -> list[object]:
    return []
