"""KernelBench level 2, 15_ConvTranspose3d_BatchNorm_Subtract: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, stride: int, padding: int) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, maps, kernel, stride, padding)
        self.norm = nn.BatchNorm3d(maps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.conv(x))
        out: torch.Tensor = y - torch.mean(y, dim=(2, 3, 4), keepdim=True)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 16, 16, 32, 32)]


def get_init_inputs() -> list[object]:
    return [16, 32, 3, 2, 1]
