"""KernelBench level 2, 83_Conv3d_GroupNorm_Min_Clamp_Dropout: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self, channels: int, maps: int, kernel: int, groups: int, low: float, high: float, drop: float
    ) -> None:
        super().__init__()
        self.conv = nn.Conv3d(channels, maps, kernel)
        self.norm = nn.GroupNorm(groups, maps)
        self.low = low
        self.high = high
        self.drop = nn.Dropout(drop).eval()  # active, it has no right result

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.min(self.norm(self.conv(x)), torch.tensor(self.low, device=x.device))
        out: torch.Tensor = self.drop(torch.clamp(y, self.low, self.high))
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 3, 16, 64, 64)]


def get_init_inputs() -> list[object]:
    return [3, 16, 3, 8, 0.0, 1.0, 0.2]
