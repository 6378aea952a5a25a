"""KernelBench level 1, 84_conv_depthwise_2D_asymmetric_input_square_kernel: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, stride: int, padding: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel, stride, padding, groups=channels, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.conv(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(64, 128, 256, 512)]


def get_init_inputs() -> list[object]:
    return [128, 128, 3, 1, 0]
