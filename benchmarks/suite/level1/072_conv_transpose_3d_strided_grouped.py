"""KernelBench level 1, 72_conv_transposed_3D_asymmetric_input_asymmetric_kernel___strided_padded_grouped_:
written from its facts in facts.json.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self,
        channels: int,
        maps: int,
        kernel: tuple[int, int, int],
        stride: tuple[int, int, int],
        padding: tuple[int, int, int],
        more: tuple[int, int, int],
        groups: int,
    ) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(
            channels, maps, kernel, stride, padding, output_padding=more, groups=groups, bias=False
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.conv(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(8, 32, 12, 24, 48)]


def get_init_inputs() -> list[object]:
    return [32, 32, (3, 5, 7), (2, 2, 2), (1, 2, 3), (1, 1, 1), 4]
