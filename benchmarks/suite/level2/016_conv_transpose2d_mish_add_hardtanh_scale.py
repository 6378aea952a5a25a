"""KernelBench level 2, 16_ConvTranspose2d_Mish_Add_Hardtanh_Scaling: written from its facts in facts.json."""

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
        plus: float,
        scale: float,
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, maps, kernel, stride, padding, more)
        self.plus = plus
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return f.hardtanh(f.mish(self.conv(x)) + self.plus) * self.scale


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 64, 128, 128)]


def get_init_inputs() -> list[object]:
    return [64, 64, 3, 2, 1, 1, 0.5, 2]
