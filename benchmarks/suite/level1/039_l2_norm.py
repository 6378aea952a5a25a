"""KernelBench level 1, 39_L2Norm_: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.div(x, torch.linalg.vector_norm(x, dim=1, keepdim=True))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(32768, 65535)]


def get_init_inputs() -> list[object]:
    return []
