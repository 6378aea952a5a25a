"""KernelBench level 2, 37_Matmul_Swish_Sum_GroupNorm: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int, groups: int, bias_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.norm = nn.GroupNorm(groups, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        normalised: torch.Tensor = self.norm(torch.sigmoid(y) * y + self.bias)
        return normalised


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(32768, 1024)]


def get_init_inputs() -> list[object]:
    return [1024, 4096, 64, [4096]]
