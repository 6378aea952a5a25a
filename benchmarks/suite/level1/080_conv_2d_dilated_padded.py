"""KernelBench level 1, 80_conv_standard_2D_square_input_asymmetric_kernel___dilated____padded__:
written from its facts in facts.json.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self,
        channels: int,
        maps: int,
        kernel: tuple[int, int],
        stride: int,
        padding: tuple[int, int],
        dilation: tuple[int, int],
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel, stride, padding, dilation, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.conv(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(8, 32, 512, 512)]


def get_init_inputs() -> list[object]:
    return [32, 64, (5, 9), 1, (2, 4), (2, 3)]
