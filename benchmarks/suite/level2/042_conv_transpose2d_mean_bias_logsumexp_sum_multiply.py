"""KernelBench level 2, 42_ConvTranspose2d_GlobalAvgPool_BiasAdd_LogSumExp_Sum_Multiply:
written from its facts in facts.json.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, maps, kernel)
        self.bias = nn.Parameter(torch.randn(shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.mean(self.conv(x), dim=(2, 3), keepdim=True) + self.bias
        return torch.sum(torch.logsumexp(y, dim=1, keepdim=True), dim=(2, 3)) * 10.0


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 64, 512, 512)]


def get_init_inputs() -> list[object]:
    return [64, 128, 3, (128, 1, 1)]
