"""KernelBench level 2, 79_Conv3d_Multiply_InstanceNorm_Clamp_Multiply_Max: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self, channels: int, maps: int, kernel: int, shape: tuple[int, ...], low: float, high: float
    ) -> None:
        super().__init__()
        self.conv = nn.Conv3d(channels, maps, kernel)
        self.scale = nn.Parameter(torch.randn(shape))
        self.norm = nn.InstanceNorm3d(maps)
        self.low = low
        self.high = high

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.clamp(self.norm(self.conv(x) * self.scale), self.low, self.high)
        return torch.max(y * self.scale, dim=1)[0]


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 3, 16, 32, 32)]


def get_init_inputs() -> list[object]:
    return [3, 16, 3, (16, 1, 1, 1), -1.0, 1.0]
