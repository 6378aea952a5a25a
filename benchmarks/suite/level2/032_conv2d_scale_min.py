"""KernelBench level 2, 32_Conv2d_Scaling_Min: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, scale: float) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel)
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.min(self.conv(x) * self.scale, dim=1, keepdim=True)[0]


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(64, 64, 256, 256)]


def get_init_inputs() -> list[object]:
    return [64, 128, 3, 2.0]
