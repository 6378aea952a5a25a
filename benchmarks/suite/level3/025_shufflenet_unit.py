"""KernelBench level 3, 25_ShuffleNetUnit: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, groups: int) -> None:
        super().__init__()
        middle = maps // 4
        self.groups = groups
        self.enter = nn.Sequential(
            nn.Conv2d(channels, middle, 1, groups=groups, bias=False), nn.BatchNorm2d(middle), nn.ReLU()
        )
        self.depthwise = nn.Sequential(
            nn.Conv2d(middle, middle, 3, padding=1, groups=middle, bias=False), nn.BatchNorm2d(middle)
        )
        self.leave = nn.Sequential(
            nn.Conv2d(middle, maps, 1, groups=groups, bias=False), nn.BatchNorm2d(maps), nn.ReLU()
        )
        self.shortcut = nn.Sequential(nn.Conv2d(channels, maps, 1, bias=False), nn.BatchNorm2d(maps))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.depthwise(self.enter(x))
        batch, maps, height, width = y.shape
        y = y.view(batch, self.groups, maps // self.groups, height, width).transpose(1, 2)
        y = y.contiguous().view(batch, maps, height, width)
        total: torch.Tensor = self.leave(y) + self.shortcut(x)
        return total


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(10, 240, 224, 224)]


def get_init_inputs() -> list[object]:
    return [240, 480, 3]
