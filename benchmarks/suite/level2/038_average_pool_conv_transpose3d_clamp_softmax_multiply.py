"""KernelBench level 2, 38_ConvTranspose3d_AvgPool_Clamp_Softmax_Multiply: written from its facts in facts.json."""

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
        more: int,
        window: int,
        low: float,
        high: float,
    ) -> None:
        super().__init__()
        self.pool = nn.AvgPool3d(window)
        self.conv = nn.ConvTranspose3d(channels, maps, kernel, stride, padding, more)
        self.low = low
        self.high = high
        self.scale = nn.Parameter(torch.ones(1, maps, 1, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.clamp(self.conv(self.pool(x)), self.low, self.high)
        batch, maps, depth, height, width = y.shape
        y = torch.softmax(y.view(batch, maps, -1), dim=2).view(batch, maps, depth, height, width)
        return y * self.scale


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(32, 32, 32, 64, 64)]


def get_init_inputs() -> list[object]:
    return [32, 64, 3, 2, 1, 1, 2, 0.0, 1.0]
