"""KernelBench level 1, 85_conv_depthwise_2D_asymmetric_input_asymmetric_kernel:
written from its facts in facts.json.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, *sizes: int) -> None:
        super().__init__()
        *windows, groups = sizes
        kernel, stride, padding, dilation = zip(windows[::2], windows[1::2], strict=True)
        self.conv = nn.Conv2d(channels, maps, kernel, stride, padding, dilation, groups, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.conv(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(32, 128, 128, 256)]


def get_init_inputs() -> list[object]:
    return [128, 128, 3, 7, 1, 1, 0, 0, 1, 1, 128]
