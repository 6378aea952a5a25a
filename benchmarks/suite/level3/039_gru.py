"""KernelBench level 3, 39_GRU: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inputs: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.gru = nn.GRU(inputs, hidden, layers)

    def forward(self, x: torch.Tensor, h0: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.gru(x, h0)[0]
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(512, 10, 128), torch.rand(6, 10, 256)]


def get_init_inputs() -> list[object]:
    return [128, 256, 6]
