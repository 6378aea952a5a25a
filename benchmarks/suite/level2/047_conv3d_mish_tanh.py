"""KernelBench level 2, 47_Conv3d_Mish_Tanh: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(channels, maps, kernel)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(f.mish(self.conv(x)))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 32, 32, 64, 64)]


def get_init_inputs() -> list[object]:
    return [32, 64, 3]
