"""KernelBench level 2, 100_ConvTranspose3d_Clamp_Min_Divide: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self, channels: int, maps: int, kernel: int, stride: int, padding: int, least: float, divisor: float
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, maps, kernel, stride, padding)
        self.least = least
        self.divisor = divisor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.clamp(self.conv(x), min=self.least) / self.divisor


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 64, 24, 48, 48)]


def get_init_inputs() -> list[object]:
    return [64, 128, 3, 2, 1, -1.0, 2.0]
