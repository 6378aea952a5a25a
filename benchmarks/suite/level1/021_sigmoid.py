"""KernelBench level 1, 21_Sigmoid: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(4096, 393216)]


def get_init_inputs() -> list[object]:
    return []
