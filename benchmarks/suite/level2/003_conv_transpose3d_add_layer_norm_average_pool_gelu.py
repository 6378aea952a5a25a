"""KernelBench level 2, 3_ConvTranspose3d_Sum_LayerNorm_AvgPool_GELU: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(
        self,
        channels: int,
        maps: int,
        kernel: tuple[int, int, int],
        stride: tuple[int, int, int],
        padding: tuple[int, int, int],
        more: tuple[int, int, int],
        weight: float,
        shape: tuple[int, ...],
        window: tuple[int, int, int],
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, maps, kernel, stride, padding, more)
        self.weight = nn.Parameter(torch.tensor(weight))
        self.norm = nn.LayerNorm(shape)
        self.pool = nn.AvgPool3d(window)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = f.gelu(self.pool(self.norm(self.conv(x) + self.weight)))
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(32, 32, 16, 32, 32)]


def get_init_inputs() -> list[object]:
    return [32, 64, (3, 3, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1), 1.0, (64,), (2, 2, 2)]
