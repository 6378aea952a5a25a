"""KernelBench level 1, 70_conv_transposed_3D__asymmetric_input__square_kernel:
written from its facts in facts.json.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, maps, kernel, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.conv(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(8, 48, 96, 96, 96)]


def get_init_inputs() -> list[object]:
    return [48, 24, 3]
