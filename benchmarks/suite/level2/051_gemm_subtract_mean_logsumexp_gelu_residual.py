"""KernelBench level 2, 51_Gemm_Subtract_GlobalAvgPool_LogSumExp_GELU_ResidualAdd:
written from its facts in facts.json.
"""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.less = nn.Parameter(torch.randn(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = x.clone().detach()
        y = torch.mean(self.linear(x) - self.less, dim=1, keepdim=True)
        return f.gelu(torch.logsumexp(y, dim=1, keepdim=True)) + kept


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(2048, 8192)]


def get_init_inputs() -> list[object]:
    return [8192, 8192]
