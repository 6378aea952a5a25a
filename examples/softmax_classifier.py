"""A linear layer, then a softmax at a learnt temperature: a matrix product with a reduction behind it.

The matrix product is best left to the vendor's library; bias, scale and softmax can fuse into one pass over its
result.
"""

import torch
from torch import nn


class Model(nn.Module):
    """Class probabilities of a batch of feature vectors."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, classes)
        self.temperature = nn.Parameter(torch.tensor(2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, features) -> (batch, classes), rows sum to 1."""
        return torch.softmax(self.linear(x) / self.temperature, dim=-1)


def get_inputs() -> list[torch.Tensor]:
    """One batch of features."""
    return [torch.randn(256, 512)]


def get_init_inputs() -> list[int]:
    """Features, classes."""
    return [512, 128]
