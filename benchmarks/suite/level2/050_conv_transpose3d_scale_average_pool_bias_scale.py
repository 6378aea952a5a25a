"""KernelBench level 2, 50_ConvTranspose3d_Scaling_AvgPool_BiasAdd_Scaling: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self,
        channels: int,
        maps: int,
        kernel: int,
        stride: int,
        padding: int,
        first: float,
        second: float,
        shape: tuple[int, ...],
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, maps, kernel, stride, padding)
        self.first = nn.Parameter(torch.tensor(first))
        self.pool = nn.AvgPool3d(2)
        self.bias = nn.Parameter(torch.randn(shape))
        self.second = nn.Parameter(torch.tensor(second))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = (self.pool(self.conv(x) * self.first) + self.bias) * self.second
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 3, 16, 32, 32)]


def get_init_inputs() -> list[object]:
    return [3, 16, 3, 2, 1, 0.5, 1.0, (16, 1, 1, 1)]
