"""KernelBench level 2, 21_Conv2d_Add_Scale_Sigmoid_GroupNorm: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self,
        channels: int,
        maps: int,
        kernel: int,
        groups: int,
        shape: tuple[int, ...],
        scale: tuple[int, ...],
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel)
        self.bias = nn.Parameter(torch.randn(shape))
        self.scale = nn.Parameter(torch.randn(scale))
        self.norm = nn.GroupNorm(groups, maps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.norm(torch.sigmoid((self.conv(x) + self.bias) * self.scale))
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 8, 256, 256)]


def get_init_inputs() -> list[object]:
    return [8, 32, 3, 8, (32, 1, 1), (32, 1, 1)]
