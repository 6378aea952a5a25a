"""KernelBench level 1, 29_Softplus: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return f.softplus(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(4096, 393216)]


def get_init_inputs() -> list[object]:
    return []
