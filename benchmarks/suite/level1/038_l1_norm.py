"""KernelBench level 1, 38_L1Norm_: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / torch.mean(torch.abs(x), dim=1, keepdim=True)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(32768, 65535)]


def get_init_inputs() -> list[object]:
    return []
