"""KernelBench level 2, 20_ConvTranspose3d_Sum_ResidualAdd_Multiply_ResidualAdd:
written from its facts in facts.json.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self,
        channels: int,
        maps: int,
        kernel: int,
        stride: int,
        padding: int,
        more: int,
        shape: tuple[int, ...],
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, maps, kernel, stride, padding, more)
        self.bias = nn.Parameter(torch.randn(shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        kept = y.clone().detach()
        y = y + self.bias + kept
        out: torch.Tensor = y * kept + kept
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 32, 16, 32, 32)]


def get_init_inputs() -> list[object]:
    return [32, 64, 3, 2, 1, 1, (64, 1, 1, 1)]
