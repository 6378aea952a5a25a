"""KernelBench level 1, 73_conv_transposed_3D_asymmetric_input_square_kernel__strided_padded__grouped:
written from its facts in facts.json.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, stride: int, padding: int, unused: int) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, maps, kernel, stride, padding, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.conv(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(4, 32, 32, 64, 128)]


def get_init_inputs() -> list[object]:
    return [32, 32, 3, 2, 1, 4]
