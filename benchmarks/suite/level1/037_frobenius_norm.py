"""KernelBench level 1, 37_FrobeniusNorm_: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = x / torch.linalg.vector_norm(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(112, 64, 512, 512)]


def get_init_inputs() -> list[object]:
    return []
