"""KernelBench level 2, 10_ConvTranspose2d_MaxPool_Hardtanh_Mean_Tanh: written from its facts in facts.json."""

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
        window: int,
        step: int,
        low: float,
        high: float,
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, maps, kernel, stride, padding)
        self.pool = nn.MaxPool2d(window, step)
        self.clip = nn.Hardtanh(low, high)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(torch.mean(self.clip(self.pool(self.conv(x))), dim=(2, 3), keepdim=True))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 64, 256, 256)]


def get_init_inputs() -> list[object]:
    return [64, 64, 3, 1, 1, 2, 2, -1, 1]
