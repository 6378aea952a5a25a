"""KernelBench level 1, 27_SELU_: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.selu(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(4096, 393216)]


def get_init_inputs() -> list[object]:
    return []
