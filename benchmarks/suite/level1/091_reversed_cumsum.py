"""KernelBench level 1, 91_cumsum_reverse: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x.flip(self.dim), dim=self.dim).flip(self.dim)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(32768, 32768)]


def get_init_inputs() -> list[object]:
    return [1]
