"""KernelBench level 2, 81_Gemm_Swish_Divide_Clamp_Tanh_Clamp: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        y = torch.clamp(y * torch.sigmoid(y) / 2.0, min=-1.0, max=1.0)
        return torch.clamp(torch.tanh(y), min=-1.0, max=1.0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(1024, 8192)]


def get_init_inputs() -> list[object]:
    return [8192, 8192]
