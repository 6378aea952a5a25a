"""KernelBench level 2, 53_Gemm_Scaling_Hardtanh_GELU: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int, scale: float, low: float, high: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.scale = scale
        self.clip = nn.Hardtanh(low, high)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return f.gelu(self.clip(self.linear(x) * self.scale))


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(2048, 8192)]


def get_init_inputs() -> list[object]:
    return [8192, 8192, 0.5, -2, 2]
