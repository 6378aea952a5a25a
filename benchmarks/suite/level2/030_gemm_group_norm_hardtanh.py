"""KernelBench level 2, 30_Gemm_GroupNorm_Hardtanh: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int, groups: int, low: float, high: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.norm = nn.GroupNorm(groups, outputs)
        self.low = low
        self.high = high

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.hardtanh(self.norm(self.linear(x)), self.low, self.high)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(1024, 8192)]


def get_init_inputs() -> list[object]:
    return [8192, 8192, 16, -2.0, 2.0]
