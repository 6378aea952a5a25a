"""KernelBench level 2, 66_Matmul_Dropout_Softmax: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int, drop: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.drop = nn.Dropout(drop).eval()  # active, it has no right result

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.drop(self.linear(x)), dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 16384)]


def get_init_inputs() -> list[object]:
    return [16384, 16384, 0.2]
