"""KernelBench level 1, 40_LayerNorm: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, shape: list[int]) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normalised: torch.Tensor = self.norm(x)
        return normalised


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 64, 256, 256)]


def get_init_inputs() -> list[object]:
    return [[64, 256, 256]]
