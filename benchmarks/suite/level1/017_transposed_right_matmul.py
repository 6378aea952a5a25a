"""KernelBench level 1, 17_Matmul_with_transposed_B: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return left @ right.T


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(2048, 8192), torch.rand(4096, 8192)]


def get_init_inputs() -> list[object]:
    return []
