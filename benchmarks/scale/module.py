"""The module of the scale benchmark: three fused regions, so that its tunables have 400,000 points."""

from __future__ import annotations

import torch
from torch import nn


class Model(nn.Module):
    """A small gated block with a norm at its end."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, width)
        self.across = nn.Linear(width, width)
        self.down = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(rows, width) -> (rows, width)."""
        gated = torch.sigmoid(self.up(x)) * x
        kept = torch.relu(self.across(gated)) + gated
        normed: torch.Tensor = self.norm(self.down(kept) + x)
        return normed


def get_inputs() -> list[torch.Tensor]:
    """One batch of rows."""
    return [torch.randn(64, 64)]


def get_init_inputs() -> list[int]:
    """The width."""
    return [64]
