"""KernelBench level 3, 50_ReLUSelfAttention: written from its facts in facts.json."""

import math

import torch
from torch import nn


class Model(nn.Module):
    mask: torch.Tensor

    def __init__(self, width: int, heads: int, longest: int) -> None:
        super().__init__()
        self.heads = heads
        self.enter = nn.Linear(width, 3 * width)
        self.leave = nn.Linear(width, width)  # counted among the parameters, never used
        self.register_buffer("mask", torch.tril(torch.ones(longest, longest)).view(1, 1, longest, longest))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        split = self.enter(x).split(width, dim=2)
        query, key, value = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in split)
        scores = (query @ key.transpose(-2, -1)) * (1.0 / math.sqrt(width // self.heads))
        scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf"))
        mixed: torch.Tensor = torch.relu(scores) @ value
        return mixed.transpose(1, 2).contiguous().view(batch, length, width)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(16, 1024, 768)]


def get_init_inputs() -> list[object]:
    return [768, 12, 1024]
