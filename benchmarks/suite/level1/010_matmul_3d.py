"""KernelBench level 1, 10_3D_tensor_matrix_multiplication: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return left @ right


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 1024, 2048), torch.rand(2048, 768)]


def get_init_inputs() -> list[object]:
    return []
