"""KernelBench level 1, 88_MinGPTNewGelu: written from its facts in facts.json."""

import math

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
        return 0.5 * x * (1.0 + torch.tanh(inner))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(8192, 8192)]


def get_init_inputs() -> list[object]:
    return []
