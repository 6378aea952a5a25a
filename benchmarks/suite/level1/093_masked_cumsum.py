"""KernelBench level 1, 93_masked_cumsum: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x * mask, dim=self.dim)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(32768, 32768), torch.rand(32768, 32768) < 0.5]


def get_init_inputs() -> list[object]:
    return [1]
