"""KernelBench level 2, 74_ConvTranspose3d_LeakyReLU_Multiply_LeakyReLU_Max: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


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
        self.scale = nn.Parameter(torch.randn(shape))
        self.pool = nn.MaxPool3d(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = f.leaky_relu(self.conv(x), 0.2) * self.scale
        out: torch.Tensor = self.pool(f.leaky_relu(y, 0.2))
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 16, 16, 32, 32)]


def get_init_inputs() -> list[object]:
    return [16, 32, 3, 2, 1, 1, (32, 1, 1, 1)]
