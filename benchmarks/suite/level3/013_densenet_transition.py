"""KernelBench level 3, 13_DenseNet121TransitionLayer: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, maps, 1, bias=False),
            nn.AvgPool2d(2),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        halved: torch.Tensor = self.layers(x)
        return halved


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 32, 256, 256)]


def get_init_inputs() -> list[object]:
    return [32, 64]
