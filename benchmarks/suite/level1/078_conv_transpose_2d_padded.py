"""KernelBench level 1, 78_conv_transposed_2D_asymmetric_input_asymmetric_kernel___padded__:
written from its facts in facts.json.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self,
        channels: int,
        maps: int,
        kernel: tuple[int, int],
        stride: tuple[int, int],
        padding: tuple[int, int],
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, maps, kernel, stride, padding, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.conv(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(8, 32, 512, 1024)]


def get_init_inputs() -> list[object]:
    return [32, 32, (3, 7), (1, 1), (1, 3)]
