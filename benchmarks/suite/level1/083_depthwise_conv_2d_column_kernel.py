"""KernelBench level 1, 83_conv_depthwise_2D_square_input_asymmetric_kernel: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, kernel: int, stride: int, padding: int, dilation: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(
            channels, channels, (kernel, 1), stride, padding, dilation, groups=channels, bias=False
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.conv(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(64, 8, 512, 512)]


def get_init_inputs() -> list[object]:
    return [8, 3, 1, 0, 1]
