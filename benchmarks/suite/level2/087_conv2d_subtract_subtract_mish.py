"""KernelBench level 2, 87_Conv2d_Subtract_Subtract_Mish: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, less: float, again: float) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, maps, kernel)
        self.less = less
        self.again = again

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return f.mish(self.conv(x) - self.less - self.again)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 8, 256, 256)]


def get_init_inputs() -> list[object]:
    return [8, 64, 3, 0.5, 0.2]
