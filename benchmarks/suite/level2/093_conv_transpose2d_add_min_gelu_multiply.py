"""KernelBench level 2, 93_ConvTranspose2d_Add_Min_GELU_Multiply: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, channels: int, maps: int, kernel: int, stride: int, plus: float, times: float) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, maps, kernel, stride)
        self.plus = plus
        self.times = times

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.min(self.conv(x) + self.plus, torch.tensor(0.0, device=x.device))
        return f.gelu(y) * self.times


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 64, 64, 64)]


def get_init_inputs() -> list[object]:
    return [64, 128, 4, 2, 0.5, 2.0]
