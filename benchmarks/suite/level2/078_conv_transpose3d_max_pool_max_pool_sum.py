"""KernelBench level 2, 78_ConvTranspose3d_Max_Max_Sum: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, stride: int, padding: int) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, maps, kernel, stride, padding)
        self.first = nn.MaxPool3d(2)
        self.second = nn.MaxPool3d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sum(self.second(self.first(self.conv(x))), dim=1, keepdim=True)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 32, 32, 32, 32)]


def get_init_inputs() -> list[object]:
    return [32, 64, 5, 2, 2]
