"""KernelBench level 2, 94_Gemm_BiasAdd_Hardtanh_Mish_GroupNorm: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int, shape: tuple[int, ...], groups: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.bias = nn.Parameter(torch.randn(shape))
        self.norm = nn.GroupNorm(groups, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.norm(f.mish(f.hardtanh(self.linear(x) + self.bias)))
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(1024, 8192)]


def get_init_inputs() -> list[object]:
    return [8192, 8192, (8192,), 256]
