"""KernelBench level 1, 74_conv_transposed_1D_dilated: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self, channels: int, maps: int, kernel: int, stride: int, padding: int, dilation: int
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose1d(channels, maps, kernel, stride, padding, dilation=dilation, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.conv(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(32, 32, 131072)]


def get_init_inputs() -> list[object]:
    return [32, 64, 5, 1, 0, 3]
