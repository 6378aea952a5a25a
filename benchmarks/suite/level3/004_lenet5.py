"""KernelBench level 3, 4_LeNet5: written from its facts in facts.json."""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 6, kernel_size=5)
        self.second = nn.Conv2d(6, 16, kernel_size=5)
        self.head = nn.Sequential(
            nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, classes)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.max_pool2d(torch.relu(self.first(x)), 2)
        x = functional.max_pool2d(torch.relu(self.second(x)), 2)
        scores: torch.Tensor = self.head(x.view(-1, 400))
        return scores


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(4096, 1, 32, 32)]


def get_init_inputs() -> list[object]:
    return [20]
