"""KernelBench level 2, 72_ConvTranspose3d_BatchNorm_AvgPool_AvgPool: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self, channels: int, maps: int, kernel: int, stride: int, padding: int, shape: tuple[int, ...]
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, maps, kernel, stride, padding)
        self.norm = nn.BatchNorm3d(maps)
        self.first = nn.AvgPool3d(2)
        self.second = nn.AvgPool3d(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.second(self.first(self.norm(self.conv(x))))
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(64, 3, 32, 32, 32)]


def get_init_inputs() -> list[object]:
    return [3, 16, 3, 2, 1, (16, 1, 1, 1)]
