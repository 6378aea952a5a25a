"""KernelBench level 1, 11_4D_tensor_matrix_multiplication: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bijl,lk->bijk", left, right)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(8, 256, 512, 256), torch.rand(256, 768)]


def get_init_inputs() -> list[object]:
    return []
