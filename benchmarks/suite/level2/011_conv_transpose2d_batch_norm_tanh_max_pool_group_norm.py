"""KernelBench level 2, 11_ConvTranspose2d_BatchNorm_Tanh_MaxPool_GroupNorm: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self, channels: int, maps: int, kernel: int, stride: int, padding: int, groups: int, parts: int
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, maps, kernel, stride, padding)
        self.batch = nn.BatchNorm2d(maps)
        self.pool = nn.MaxPool2d(2)
        self.group = nn.GroupNorm(groups, maps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.group(self.pool(torch.tanh(self.batch(self.conv(x)))))
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(512, 64, 32, 32)]


def get_init_inputs() -> list[object]:
    return [64, 128, 5, 1, 1, 8, 8]
