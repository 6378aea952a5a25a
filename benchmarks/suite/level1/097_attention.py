"""KernelBench level 1, 97_ScaledDotProductAttention: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional as f


class Model(nn.Module):
    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return f.scaled_dot_product_attention(query, key, value)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(32, 32, 512, 1024), torch.rand(32, 32, 512, 1024), torch.rand(32, 32, 512, 1024)]


def get_init_inputs() -> list[object]:
    return []
