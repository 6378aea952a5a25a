"""KernelBench level 2, 7_Conv3d_ReLU_LeakyReLU_GELU_Sigmoid_BiasAdd: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.conv = nn.Conv3d(channels, maps, kernel)
        self.bias = nn.Parameter(torch.randn(shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = f.gelu(f.leaky_relu(torch.relu(self.conv(x)), negative_slope=0.01))
        return torch.sigmoid(y) + self.bias


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(64, 8, 32, 64, 64)]


def get_init_inputs() -> list[object]:
    return [8, 32, 3, (32, 1, 1, 1)]
