"""KernelBench level 1, 8_Matmul_with_irregular_shapes_: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return left @ right


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(8205, 2949), torch.rand(2949, 5921)]


def get_init_inputs() -> list[object]:
    return []
