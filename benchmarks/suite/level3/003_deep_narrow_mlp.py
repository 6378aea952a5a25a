"""KernelBench level 3, 3_DeepNarrowMLP: written from its facts in facts.json."""

import itertools

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inputs: int, hidden: list[int], outputs: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        widths = [inputs, *hidden]
        for narrow, wide in itertools.pairwise(widths):
            layers += [nn.Linear(narrow, wide), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.Linear(widths[-1], outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.layers(x)
        return scores


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(1024, 8192)]


def get_init_inputs() -> list[object]:
    return [
        8192,
        [1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024],
        8192,
    ]
