"""KernelBench level 2, 19_ConvTranspose2d_GELU_GroupNorm: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, stride: int, groups: int, parts: int) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, maps, kernel, stride)
        self.norm = nn.GroupNorm(parts, maps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.norm(f.gelu(self.conv(x)))
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 64, 256, 256)]


def get_init_inputs() -> list[object]:
    return [64, 64, 3, 1, 8, 8]
