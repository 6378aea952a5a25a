"""KernelBench level 3, 8_ResNetBasicBlock: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, maps, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(maps),
            nn.ReLU(inplace=True),
            nn.Conv2d(maps, maps, 3, padding=1, bias=False),
            nn.BatchNorm2d(maps),
        )
        self.shortcut = nn.Sequential(nn.Conv2d(channels, maps, 1, stride, bias=False), nn.BatchNorm2d(maps))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(10, 3, 224, 224)]


def get_init_inputs() -> list[object]:
    return [3, 64, 1]
