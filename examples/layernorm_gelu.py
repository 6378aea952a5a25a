"""Layer norm over the last dimension, then GELU: two memory-bound passes that one kernel can fuse.

Eager PyTorch reads and writes x twice. The sizes are small enough for the simulator.
"""

import torch
from torch import nn


class Model(nn.Module):
    """GELU of a layer norm with learnt scale and shift."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (rows, features) -> (rows, features)."""
        return nn.functional.gelu(self.norm(x))


def get_inputs() -> list[torch.Tensor]:
    """One batch of activations."""
    return [torch.randn(2048, 1024)]


def get_init_inputs() -> list[int]:
    """Features."""
    return [1024]
