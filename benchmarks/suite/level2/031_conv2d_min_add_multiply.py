"""KernelBench level 2, 31_Conv2d_Min_Add_Multiply: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self, channels: int, maps: int, kernel: int, most: float, shape: tuple[int, ...], scale: float
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel)
        self.most = most
        self.bias = nn.Parameter(torch.randn(shape))
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (torch.min(self.conv(x), torch.tensor(self.most, device=x.device)) + self.bias) * self.scale


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 64, 128, 128)]


def get_init_inputs() -> list[object]:
    return [64, 128, 3, 0.5, (128, 1, 1), 2.0]
