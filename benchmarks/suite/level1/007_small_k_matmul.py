"""KernelBench level 1, 7_Matmul_with_small_K_dimension_: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return left @ right


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(32768, 64), torch.rand(64, 32768)]


def get_init_inputs() -> list[object]:
    return []
