"""KernelBench level 2, 49_ConvTranspose3d_Softmax_Sigmoid: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, stride: int, padding: int, more: int) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, maps, kernel, stride, padding, more)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(torch.softmax(self.conv(x), dim=1))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 32, 16, 32, 32)]


def get_init_inputs() -> list[object]:
    return [32, 64, 3, 2, 1, 1]
