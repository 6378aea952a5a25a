"""KernelBench level 2, 27_Conv3d_HardSwish_GroupNorm_Mean: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(channels, maps, kernel)
        self.norm = nn.GroupNorm(4, maps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.mean(self.norm(f.hardswish(self.conv(x))), dim=(2, 3, 4))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(1024, 3, 16, 32, 32)]


def get_init_inputs() -> list[object]:
    return [3, 16, 4]
