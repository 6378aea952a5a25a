"""KernelBench level 2, 24_Conv3d_Min_Softmax: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, dim: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(channels, maps, kernel)
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.min(self.conv(x), dim=self.dim)[0], dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 3, 24, 32, 32)]


def get_init_inputs() -> list[object]:
    return [3, 24, 3, 2]
