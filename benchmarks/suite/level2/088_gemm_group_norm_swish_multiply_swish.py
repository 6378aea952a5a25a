"""KernelBench level 2, 88_Gemm_GroupNorm_Swish_Multiply_Swish: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int, groups: int, weight_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.norm = nn.GroupNorm(groups, outputs)
        self.weight = nn.Parameter(torch.randn(weight_shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.linear(x))
        y = y * torch.sigmoid(y) * self.weight
        return torch.mul(y, torch.sigmoid(y))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(1024, 8192)]


def get_init_inputs() -> list[object]:
    return [8192, 8192, 256, [8192]]
