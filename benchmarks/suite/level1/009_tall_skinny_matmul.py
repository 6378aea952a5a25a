"""KernelBench level 1, 9_Tall_skinny_matrix_multiplication_: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return left @ right


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(32768, 32), torch.rand(32, 32768)]


def get_init_inputs() -> list[object]:
    return []
