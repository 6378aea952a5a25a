"""KernelBench level 1, 6_Matmul_with_large_K_dimension_: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return left @ right


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(256, 524288), torch.rand(524288, 256)]


def get_init_inputs() -> list[object]:
    return []
