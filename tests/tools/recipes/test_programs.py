"""Whole networks: kernels and library calls together, updates, direct outputs, and binding to other shapes."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from memory.records import KernelStep, LibraryStep
from tests.tools.recipes.subjects import Function, captured, complaints
from tools.devices.port import Device
from tools.recipes.blueprints import blueprints, build


class Residual(nn.Module):
    """A strided convolution block with a shortcut, pooling and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 7, 2, 3)
        self.norms = nn.ModuleList(nn.BatchNorm2d(c) for c in (8, 16, 16))
        self.second = nn.Conv2d(8, 16, 3, 2, 1, bias=False)
        self.shortcut = nn.Conv2d(8, 16, 1, 2, bias=False)
        self.classify = nn.Linear(16, 10)
        for norm in self.norms:
            norm.register_buffer("num_batches_tracked", None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, 3, H, W) -> (B, 10)."""
        x = F.max_pool2d(F.relu(self.norms[0](self.first(x))), 3, 2, 1)
        x = F.relu(self.norms[1](self.second(x)) + self.norms[2](self.shortcut(x)))
        result: torch.Tensor = self.classify(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))
        return result


class Attention(nn.Module):
    """Causal self-attention written out, with a pre-norm and an MLP."""

    def __init__(self, width: int = 16, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.register_buffer("mask", torch.tril(torch.ones(32, 32)).view(1, 1, 32, 32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, T, C) -> (B, T, C)."""
        b, t, c = x.shape
        q, k, v = (
            part.view(b, t, self.heads, c // self.heads).transpose(1, 2)
            for part in self.project(self.norm(x)).split(c, dim=2)
        )
        scores = (q @ k.transpose(-2, -1)) * (c // self.heads) ** -0.5
        scores = scores.masked_fill(self.get_buffer("mask")[:, :, :t, :t] == 0, float("-inf"))
        mixed = (F.softmax(scores, -1) @ v).transpose(1, 2).contiguous().view(b, t, c)
        result: torch.Tensor = x + self.out(mixed)
        return result


class Windows(nn.Module):
    """Window partition and its inverse: reshapes whose sizes only two captures tell apart."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, H, W, C) -> (B, H, W, C)."""
        b, h, w, c = x.shape
        y = torch.roll(x, (-1, -1), (1, 2)).view(b, h // 4, 4, w // 4, 4, c)
        y = F.relu(y.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, 4, 4, c)) * 2
        y = y.view(b, h // 4, w // 4, 4, 4, -1).permute(0, 1, 3, 2, 4, 5).contiguous().view(b, h, w, -1)
        return torch.roll(y, (1, 1), (1, 2)) + x


class Sizes(nn.Module):
    """Numbers that follow the shapes: divisors, slices, fills."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Each result would be wrong if a captured number were kept."""
        n = x.shape[1]
        joined = torch.cat([x, y], 1)[:, n:]
        return (
            x.sum(1) / n,
            y[:, :n] * 2,
            torch.zeros(x.shape[0], 3) + 1,
            joined,
            torch.arange(n).view(1, -1) + x,
            y[-1:],
        )


class Shuffle(nn.Module):
    """A channel shuffle, a concatenation, a chunk and a reduction of one tensor."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """(B, C, H, W)."""
        b, c, h, w = x.shape
        y = x.view(b, 2, c // 2, h, w).transpose(1, 2).contiguous().view(b, -1, h, w)
        return torch.cat([F.relu(y), x], 1), torch.chunk(x * 2, 2, 1)[1] + 1, F.relu(x).flatten(1).sum(1)


@pytest.mark.parametrize(
    ("module", "shapes", "others"),
    [
        (Residual(), [(2, 3, 32, 32)], [(3, 3, 40, 48)]),
        (Residual().eval(), [(2, 3, 32, 32)], [(3, 3, 24, 32)]),
        (Attention(), [(2, 8, 16)], [(3, 12, 16)]),
        (Windows(), [(2, 8, 8, 5)], [(1, 12, 8, 5)]),
        (Sizes(), [(4, 6), (4, 9)], [(3, 4), (3, 7)]),
        (Shuffle(), [(2, 4, 3, 3)], [(3, 4, 2, 5)]),
    ],
)
def test_networks_agree_at_their_own_shapes_and_at_the_twins(
    module: nn.Module,
    shapes: list[tuple[int, ...]],
    others: list[tuple[int, ...]],
    simulated_h200: Device,
) -> None:
    torch.manual_seed(0)
    subject = captured(module, *(torch.randn(shape) for shape in shapes))
    twin = captured(module, *(torch.randn(shape) for shape in others))
    for blueprint in blueprints(subject.problem, twin.problem):
        program = build(subject.problem, blueprint, twin.problem)
        assert complaints(subject, program, simulated_h200, sanitize=False) == []
        assert complaints(twin, program, simulated_h200, sanitize=False) == []


def test_batch_statistics_are_written_back_by_the_kernel_that_computes_them(simulated_h200: Device) -> None:
    norm = nn.BatchNorm2d(6)
    norm.register_buffer("num_batches_tracked", None)
    subject = captured(nn.Sequential(norm, nn.Tanh()), torch.randn(4, 6, 5, 4))
    program = build(subject.problem, blueprints(subject.problem)[0])
    assert set(program.updates) == set(subject.problem.graph.updates) != set()
    assert len(program.steps) == 1
    assert complaints(subject, program, simulated_h200) == []


def test_inputs_views_and_constants_can_be_results(simulated_h200: Device) -> None:
    module = Function(lambda x: (x, x.T, x.t() * 2, x.view(-1), x[0], torch.zeros(3), x))
    subject = captured(module, torch.randn(3, 5))
    for blueprint in blueprints(subject.problem):
        assert complaints(subject, build(subject.problem, blueprint), simulated_h200) == []


def test_what_depends_on_weights_alone_is_prepared_once(simulated_h200: Device) -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(6, 8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ torch.softmax(self.weight, -1).T

    subject = captured(Scaled(), torch.randn(4, 8))
    program = build(subject.problem, blueprints(subject.problem)[0])
    assert [type(step) for step in program.prepare] == [KernelStep, LibraryStep]
    assert [type(step) for step in program.steps] == [LibraryStep]
    assert complaints(subject, program, simulated_h200) == []


def test_results_keep_the_strides_that_pytorch_gives_them() -> None:
    subject = captured(Function(lambda x: torch.relu(x.permute(0, 2, 1))), torch.randn(3, 7, 8))
    program = build(subject.problem, blueprints(subject.problem)[0])
    kernel, view = program.steps
    assert isinstance(kernel, KernelStep)
    assert isinstance(view, LibraryStep) and view.op == "aten.permute.default"


def test_no_size_of_the_problem_is_a_number_in_the_source() -> None:
    subject = captured(Function(lambda x: torch.softmax(x, -1) * 2), torch.randn(37, 4099))
    program = build(subject.problem, blueprints(subject.problem)[0])
    assert "37" not in " ".join((program.source, *program.dims.values())).replace("2130000000", "")
    assert "4099" not in " ".join((program.source, *program.dims.values()))


def test_repeated_blocks_share_one_kernel_and_very_deep_networks_stay_within_the_source_limit(
    simulated_h200: Device,
) -> None:
    class Deep(nn.Module):
        def __init__(self, widths: list[int]) -> None:
            super().__init__()
            self.norms = nn.ModuleList(nn.LayerNorm(width) for width in widths)
            pairs = zip(widths, [*widths[1:], widths[-1]], strict=True)
            self.layers = nn.ModuleList(nn.Linear(one, other) for one, other in pairs)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for norm, layer in zip(self.norms, self.layers, strict=True):
                x = torch.relu(layer(norm(x)))
            return x

    same = captured(Deep([8] * 12), torch.randn(3, 8))
    program = build(same.problem, blueprints(same.problem)[0])
    assert sum(isinstance(step, KernelStep) for step in program.steps) == 13
    assert len(program.entries) == 3
    assert complaints(same, program, simulated_h200, sanitize=False) == []
    growing = captured(Deep(list(range(4, 104))), torch.randn(3, 4))
    assert len(build(growing.problem, blueprints(growing.problem)[0]).source) < 256 * 1024
