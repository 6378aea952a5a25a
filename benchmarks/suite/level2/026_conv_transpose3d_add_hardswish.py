"""KernelBench level 2, 26_ConvTranspose3d_Add_HardSwish: written from its facts in facts.json."""

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
        self.bias = nn.Parameter(torch.randn(shape))  # counted among the parameters, never used

    def forward(self, x: torch.Tensor, added: torch.Tensor) -> torch.Tensor:
        y = self.conv(x) + added
        out: torch.Tensor = y * f.hardswish(y)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 32, 16, 16, 16), torch.rand(128, 64, 32, 32, 32)]


def get_init_inputs() -> list[object]:
    return [32, 64, 3, 2, 1, 1, (64, 1, 1, 1, 1)]
