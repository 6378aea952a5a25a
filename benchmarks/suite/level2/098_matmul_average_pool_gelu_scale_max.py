"""KernelBench level 2, 98_Matmul_AvgPool_GELU_Scale_Max: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int, window: int, scale: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.pool = nn.AvgPool1d(window)
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.pool(self.linear(x).unsqueeze(1)).squeeze(1)
        return torch.max(f.gelu(y) * self.scale, dim=1)[0]


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(1024, 8192)]


def get_init_inputs() -> list[object]:
    return [8192, 8192, 16, 2.0]
