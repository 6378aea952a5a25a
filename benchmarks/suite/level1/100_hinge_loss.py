"""KernelBench level 1, 100_HingeLoss: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, predicted: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return torch.mean(torch.clamp(1 - predicted * wanted, min=0))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(32768, 32768), torch.randint(0, 2, (32768,)).float() * 2 - 1]


def get_init_inputs() -> list[object]:
    return []
