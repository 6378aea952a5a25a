"""KernelBench level 2, 2_ConvTranspose2d_BiasAdd_Clamp_Scaling_Clamp_Divide:
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
        scale: float,
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, maps, kernel, stride, padding, more)
        self.bias = nn.Parameter(torch.randn(shape))
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.clamp(self.conv(x) + self.bias, min=0.0, max=1.0)
        y = torch.clamp(y * self.scale, min=0.0, max=1.0)
        return y / self.scale


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 64, 128, 128)]


def get_init_inputs() -> list[object]:
    return [64, 64, 3, 2, 1, 1, (64, 1, 1), 2.0]
