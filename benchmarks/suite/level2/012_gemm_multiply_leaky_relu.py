"""KernelBench level 2, 12_Gemm_Multiply_LeakyReLU: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int, times: float, slope: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.times = times
        self.slope = slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return f.leaky_relu(self.linear(x) * self.times, self.slope)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(1024, 8192)]


def get_init_inputs() -> list[object]:
    return [8192, 8192, 2.0, 0.1]
