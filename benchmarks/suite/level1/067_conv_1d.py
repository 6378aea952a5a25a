"""KernelBench level 1, 67_conv_standard_1D: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(channels, maps, kernel, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.conv(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(32, 64, 131072)]


def get_init_inputs() -> list[object]:
    return [64, 128, 3]
