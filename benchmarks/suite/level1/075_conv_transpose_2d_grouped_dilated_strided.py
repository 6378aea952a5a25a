"""KernelBench level 1, 75_conv_transposed_2D_asymmetric_input_asymmetric_kernel_strided__grouped____padded____dilated__
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
        dilation: tuple[int, int],
        groups: int,
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(
            channels, maps, kernel, stride, padding, groups=groups, dilation=dilation, bias=False
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.conv(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 32, 128, 256)]


def get_init_inputs() -> list[object]:
    return [32, 64, (3, 5), (2, 3), (1, 2), (2, 1), 4]
