"""KernelBench level 3, 44_MiniGPTBlock: written from its facts in facts.json."""

import math

import torch
from torch import nn


class Attention(nn.Module):
    """Causal attention, masked and normalised by hand."""

    mask: torch.Tensor

    def __init__(self, width: int, heads: int, longest: int) -> None:
        super().__init__()
        self.heads = heads
        self.enter = nn.Linear(width, 3 * width)
        self.leave = nn.Linear(width, width)
        self.register_buffer("mask", torch.tril(torch.ones(longest, longest)).view(1, 1, longest, longest))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        split = self.enter(x).split(width, dim=2)
        query, key, value = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in split)
        scores = (query @ key.transpose(-2, -1)) * (1.0 / math.sqrt(width // self.heads))
        scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf"))
        mixed = torch.softmax(scores, dim=-1) @ value
        out: torch.Tensor = self.leave(mixed.transpose(1, 2).contiguous().view(batch, length, width))
        return out


class Model(nn.Module):
    def __init__(self, width: int, heads: int, attention_drop: float, drop: float, longest: int) -> None:
        super().__init__()
        self.drops = (attention_drop, drop)
        self.first = nn.LayerNorm(width)
        self.attention = Attention(width, heads, longest)
        self.second = nn.LayerNorm(width)
        self.enter = nn.Linear(width, 4 * width)
        self.leave = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.first(x))
        y = self.enter(self.second(x))
        y = 0.5 * y * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (y + 0.044715 * torch.pow(y, 3.0))))
        out: torch.Tensor = x + self.leave(y)
        return out


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(128, 512, 768)]


def get_init_inputs() -> list[object]:
    return [768, 8, 0.0, 0.0, 1024]
