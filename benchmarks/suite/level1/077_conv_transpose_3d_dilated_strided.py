"""KernelBench level 1, 77_conv_transposed_3D_square_input_square_kernel___padded____dilated____strided__:
written from its facts in facts.json.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self, channels: int, maps: int, kernel: int, stride: int, padding: int, dilation: int
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, maps, kernel, stride, padding, dilation=dilation, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.conv(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 32, 16, 32, 32)]


def get_init_inputs() -> list[object]:
    return [32, 64, 3, 2, 1, 2]
