"""KernelBench level 2, 91_ConvTranspose2d_Softmax_BiasAdd_Scaling_Sigmoid: written from its facts in facts.json."""

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
        extra: int,
        bias_shape: tuple[int, ...],
        scale: float,
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, maps, kernel, stride, padding, extra)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.softmax(self.conv(x), dim=1)
        return torch.sigmoid((y + self.bias) * self.scale)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 64, 64, 64)]


def get_init_inputs() -> list[object]:
    return [64, 128, 4, 2, 1, 1, [128, 1, 1], 2.0]
