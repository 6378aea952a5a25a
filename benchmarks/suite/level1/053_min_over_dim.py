"""KernelBench level 1, 53_Min_reduction_over_a_dimension: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.min(x, dim=self.dim)[0]


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 4096, 4095)]


def get_init_inputs() -> list[object]:
    return [1]
