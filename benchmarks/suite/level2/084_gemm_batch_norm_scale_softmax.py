"""KernelBench level 2, 84_Gemm_BatchNorm_Scaling_Softmax: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self, inputs: int, outputs: int, eps: float, momentum: float, shape: tuple[int, ...]
    ) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.norm = nn.BatchNorm1d(outputs, eps=eps, momentum=momentum)
        self.scale = nn.Parameter(torch.ones(shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.scale * self.norm(self.linear(x)), dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(1024, 8192)]


def get_init_inputs() -> list[object]:
    return [8192, 8192, 1e-05, 0.1, (1,)]
