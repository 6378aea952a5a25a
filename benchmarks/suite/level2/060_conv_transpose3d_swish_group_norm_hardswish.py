"""KernelBench level 2, 60_ConvTranspose3d_Swish_GroupNorm_HardSwish: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(
        self, channels: int, maps: int, kernel: int, stride: int, padding: int, groups: int, eps: float
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, maps, kernel, stride, padding)
        self.norm = nn.GroupNorm(groups, maps, eps=eps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        return f.hardswish(self.norm(torch.sigmoid(y) * y))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 3, 16, 32, 32)]


def get_init_inputs() -> list[object]:
    return [3, 16, 3, 2, 1, 4, 1e-05]
