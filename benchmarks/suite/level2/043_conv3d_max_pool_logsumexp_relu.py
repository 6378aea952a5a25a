"""KernelBench level 2, 43_Conv3d_Max_LogSumExp_ReLU: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, stride: int, padding: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(channels, maps, kernel, stride, padding)
        self.pool = nn.MaxPool3d(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.logsumexp(self.pool(self.conv(x)), dim=1, keepdim=True))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(4, 32, 32, 128, 128)]


def get_init_inputs() -> list[object]:
    return [32, 64, 3, 1, 1]
