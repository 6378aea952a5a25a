"""KernelBench level 1, 54_conv_standard_3D__square_input__square_kernel: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(channels, maps, kernel, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.conv(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 3, 64, 64, 64)]


def get_init_inputs() -> list[object]:
    return [3, 64, 3]
