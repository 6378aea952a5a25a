"""KernelBench level 1, 32_HardTanh: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return f.hardtanh(x, min_val=-1.0, max_val=1.0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(4096, 393216)]


def get_init_inputs() -> list[object]:
    return []
