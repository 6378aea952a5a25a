"""KernelBench level 1, 65_conv_transposed_2D__square_input__asymmetric_kernel:
written from its facts in facts.json.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: tuple[int, int]) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, maps, kernel, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.conv(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(8, 64, 512, 512)]


def get_init_inputs() -> list[object]:
    return [64, 64, (3, 7)]
