"""KernelBench level 2, 82_Conv2d_Tanh_Scaling_BiasAdd_Max: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def __init__(
        self, channels: int, maps: int, kernel: int, scale: float, bias_shape: tuple[int, ...], window: int
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel)
        self.scale = scale
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.window = window

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(self.conv(x)) * self.scale + self.bias
        return functional.max_pool2d(y, self.window)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 8, 256, 256)]


def get_init_inputs() -> list[object]:
    return [8, 64, 3, 2.0, [64, 1, 1], 4]
