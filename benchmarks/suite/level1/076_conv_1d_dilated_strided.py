"""KernelBench level 1, 76_conv_standard_1D_dilated_strided__: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, stride: int, dilation: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(channels, maps, kernel, stride, dilation=dilation, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.conv(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(64, 64, 524280)]


def get_init_inputs() -> list[object]:
    return [64, 128, 3, 3, 4]
