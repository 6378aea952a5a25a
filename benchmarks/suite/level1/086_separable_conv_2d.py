"""KernelBench level 1, 86_conv_depthwise_separable_2D: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self, channels: int, maps: int, kernel: int, stride: int, padding: int, dilation: int
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(
            channels, channels, kernel, stride, padding, dilation, groups=channels, bias=False
        )
        self.mix = nn.Conv2d(channels, maps, 1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.mix(self.conv(x))
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 64, 512, 512)]


def get_init_inputs() -> list[object]:
    return [64, 128, 3, 1, 1, 1]
