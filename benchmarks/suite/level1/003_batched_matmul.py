"""KernelBench level 1, 3_Batched_matrix_multiplication: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return torch.bmm(left, right)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 512, 1024), torch.rand(128, 1024, 2048)]


def get_init_inputs() -> list[object]:
    return []
