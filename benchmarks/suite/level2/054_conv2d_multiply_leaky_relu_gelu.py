"""KernelBench level 2, 54_Conv2d_Multiply_LeakyReLU_GELU: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel)
        self.scale = nn.Parameter(torch.randn(shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return f.gelu(f.leaky_relu(self.conv(x) * self.scale))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(64, 64, 256, 256)]


def get_init_inputs() -> list[object]:
    return [64, 64, 3, (64, 1, 1)]
