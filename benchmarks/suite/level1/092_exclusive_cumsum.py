"""KernelBench level 1, 92_cumsum_exclusive: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sums = torch.cumsum(x.narrow(self.dim, 0, x.size(self.dim) - 1), dim=self.dim)
        first = torch.zeros_like(x.select(self.dim, 0).unsqueeze(self.dim))
        return torch.cat((first, sums), dim=self.dim)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(32768, 32768)]


def get_init_inputs() -> list[object]:
    return [1]
