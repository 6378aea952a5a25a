"""KernelBench level 1, 64_conv_transposed_1D: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose1d(channels, maps, kernel, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.conv(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(64, 128, 65536)]


def get_init_inputs() -> list[object]:
    return [128, 128, 3]
