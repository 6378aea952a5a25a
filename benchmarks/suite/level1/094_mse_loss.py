"""KernelBench level 1, 94_MSELoss: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, predicted: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return torch.mean((predicted - wanted) ** 2)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(32768, 32768), torch.rand(32768, 32768)]


def get_init_inputs() -> list[object]:
    return []
