"""KernelBench level 1, 20_LeakyReLU: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return f.leaky_relu(x, negative_slope=0.01)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(4096, 393216)]


def get_init_inputs() -> list[object]:
    return []
