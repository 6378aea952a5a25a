"""KernelBench level 2, 45_Gemm_Sigmoid_LogSumExp: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.second = nn.Linear(hidden, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.logsumexp(self.second(torch.sigmoid(self.first(x))), dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16384, 2048)]


def get_init_inputs() -> list[object]:
    return [2048, 4096, 1024]
