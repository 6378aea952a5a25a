"""KernelBench level 2, 57_Conv2d_ReLU_HardSwish: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.conv(x))
        return y * torch.clamp((y + 3) / 6, 0, 1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 8, 128, 128)]


def get_init_inputs() -> list[object]:
    return [8, 64, 3]
