"""KernelBench level 2, 59_Matmul_Swish_Scaling: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int, scale: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        out: torch.Tensor = y * torch.sigmoid(y) * self.scale
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 32768)]


def get_init_inputs() -> list[object]:
    return [32768, 32768, 2.0]
