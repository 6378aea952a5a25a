"""KernelBench level 1, 99_TripletMarginLoss: written from its facts in facts.json."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, margin: float) -> None:
        super().__init__()
        self.loss = nn.TripletMarginLoss(margin=margin)

    def forward(self, anchor: torch.Tensor, alike: torch.Tensor, unlike: torch.Tensor) -> torch.Tensor:
        loss: torch.Tensor = self.loss(anchor, alike, unlike)
        return loss


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(32768, 8192), torch.rand(32768, 8192), torch.rand(32768, 8192)]


def get_init_inputs() -> list[object]:
    return [1.0]
