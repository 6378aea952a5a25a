"""KernelBench level 2, 5_ConvTranspose2d_Subtract_Tanh: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, maps, kernel, stride=2, padding=1, output_padding=1)
        self.bias = nn.Parameter(torch.randn(shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.conv(x) - self.bias)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(32, 64, 256, 256)]


def get_init_inputs() -> list[object]:
    return [64, 64, 4, (64, 1, 1)]
