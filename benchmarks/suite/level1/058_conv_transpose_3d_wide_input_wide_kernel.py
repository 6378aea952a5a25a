"""KernelBench level 1, 58_conv_transposed_3D__asymmetric_input__asymmetric_kernel:
written from its facts in facts.json.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: tuple[int, int, int]) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, maps, kernel, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.conv(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 32, 16, 32, 64)]


def get_init_inputs() -> list[object]:
    return [32, 16, (3, 5, 7)]
