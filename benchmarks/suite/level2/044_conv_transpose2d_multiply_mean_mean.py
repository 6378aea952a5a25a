"""KernelBench level 2, 44_ConvTranspose2d_Multiply_GlobalAvgPool_GlobalAvgPool_Mean:
written from its facts in facts.json.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self, channels: int, maps: int, kernel: int, stride: int, padding: int, more: int, times: float
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, maps, kernel, stride, padding, more)
        self.times = times

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.mean(self.conv(x) * self.times, dim=(2, 3), keepdim=True)
        return torch.mean(y, dim=(2, 3), keepdim=True)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 64, 128, 128)]


def get_init_inputs() -> list[object]:
    return [64, 128, 3, 2, 1, 1, 0.5]
