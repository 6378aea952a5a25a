"""KernelBench level 1, 50_conv_standard_2D__square_input__square_kernel: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.classes = classes
        self.conv = nn.Conv2d(3, 96, kernel_size=11, stride=4, padding=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mapped: torch.Tensor = self.conv(x)
        return mapped


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(256, 3, 224, 224)]


def get_init_inputs() -> list[object]:
    return [1000]
