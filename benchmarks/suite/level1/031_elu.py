"""KernelBench level 1, 31_ELU: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, alpha: float) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return f.elu(x, alpha=self.alpha)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(4096, 393216)]


def get_init_inputs() -> list[object]:
    return [1.0]
