"""KernelBench level 3, 17_SqueezeNetFireModule: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, squeezed: int, narrow: int, wide: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(channels, squeezed, 1)
        self.narrow = nn.Conv2d(squeezed, narrow, 1)
        self.wide = nn.Conv2d(squeezed, wide, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.squeeze(x))
        return torch.cat([torch.relu(self.narrow(x)), torch.relu(self.wide(x))], dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 3, 256, 256)]


def get_init_inputs() -> list[object]:
    return [3, 6, 64, 64]
