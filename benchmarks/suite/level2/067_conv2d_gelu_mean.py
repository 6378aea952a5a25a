"""KernelBench level 2, 67_Conv2d_GELU_GlobalAvgPool: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return f.adaptive_avg_pool2d(f.gelu(self.conv(x)), 1).squeeze(-1).squeeze(-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 8, 256, 256)]


def get_init_inputs() -> list[object]:
    return [8, 64, 3]
