"""KernelBench level 2, 89_ConvTranspose3d_MaxPool_Softmax_Subtract_Swish_Max:
written from its facts in facts.json.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self,
        channels: int,
        maps: int,
        kernel: int,
        stride: int,
        padding: int,
        more: int,
        window: int,
        step: int,
        rim: int,
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, maps, kernel, stride, padding, more)
        self.pool = nn.MaxPool3d(window, step, rim)
        self.less = nn.Parameter(torch.randn(maps))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.softmax(self.pool(self.conv(x)), dim=1) - self.less.view(1, -1, 1, 1, 1)
        return torch.max(torch.sigmoid(y) * y, dim=1)[0]


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 3, 16, 32, 32)]


def get_init_inputs() -> list[object]:
    return [3, 16, 3, 2, 1, 1, 2, 2, 0]
