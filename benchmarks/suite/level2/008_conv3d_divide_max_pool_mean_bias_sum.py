"""KernelBench level 2, 8_Conv3d_Divide_Max_GlobalAvgPool_BiasAdd_Sum: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self,
        channels: int,
        maps: int,
        kernel: tuple[int, int, int],
        divisor: float,
        window: tuple[int, int, int],
        shape: tuple[int, ...],
        dim: int,
    ) -> None:
        super().__init__()
        self.conv = nn.Conv3d(channels, maps, kernel)
        self.divisor = divisor
        self.pool = nn.MaxPool3d(window)
        self.mean = nn.AdaptiveAvgPool3d(1)
        self.bias = nn.Parameter(torch.randn(shape))
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.mean(self.pool(self.conv(x) / self.divisor))
        return torch.sum(y + self.bias, dim=self.dim)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 8, 16, 64, 64)]


def get_init_inputs() -> list[object]:
    return [8, 16, (3, 3, 3), 2.0, (2, 2, 2), (16, 1, 1, 1), 1]
