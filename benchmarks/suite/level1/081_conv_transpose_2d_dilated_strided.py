"""KernelBench level 1, 81_conv_transposed_2D_asymmetric_input_square_kernel___dilated____padded____strided__:
written from its facts in facts.json.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self, channels: int, maps: int, kernel: int, stride: int, padding: int, dilation: int
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, maps, kernel, stride, padding, dilation=dilation, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.conv(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 32, 64, 128)]


def get_init_inputs() -> list[object]:
    return [32, 64, 3, 5, 1, 2]
