"""Pools and depthwise convolutions as kernels: every form against PyTorch, alone and fused with what follows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from memory.records import KernelStep, LibraryStep, Program
from tests.tools.recipes.subjects import Function, captured, complaints, twin_of
from tools.devices.port import Device
from tools.gpus import gpu_named
from tools.program import validate
from tools.recipes.blueprints import FusionLevel, blueprints, build

Made = tuple[Callable[[torch.Tensor], torch.Tensor], tuple[int, ...]]

POOLS: dict[str, Made] = {
    "max_2d": (lambda x: F.max_pool2d(x, 2), (2, 3, 8, 8)),
    "max_2d_odd": (lambda x: F.max_pool2d(x, 3, 2), (2, 3, 7, 9)),
    "max_2d_padded_dilated": (lambda x: F.max_pool2d(x, 3, 1, 1, 2), (2, 3, 7, 9)),
    "max_2d_padded": (lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 0)), (2, 3, 7, 9)),
    "max_2d_ceil": (lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), (2, 3, 8, 10)),
    "max_2d_unbatched": (lambda x: F.max_pool2d(x, 2), (3, 8, 6)),
    "max_2d_to_one": (lambda x: F.max_pool2d(x, (5, 7)), (2, 3, 5, 7)),
    "max_1d": (lambda x: F.max_pool1d(x, 4, 2, 1, 2), (2, 3, 17)),
    "max_3d": (lambda x: F.max_pool3d(x, 3, 2, 1), (2, 2, 5, 6, 7)),
    "mean_1d": (lambda x: F.avg_pool1d(x, 4, 1, 2), (2, 3, 17)),
    "mean_2d": (lambda x: F.avg_pool2d(x, 4), (2, 3, 8, 12)),
    "mean_2d_padded": (lambda x: F.avg_pool2d(x, 3, 2, 1), (2, 3, 7, 9)),
    "mean_2d_inside": (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (2, 3, 7, 9)),
    "mean_2d_ceil": (lambda x: F.avg_pool2d(x, 3, 2, ceil_mode=True), (2, 3, 8, 10)),
    "mean_2d_ceil_padded": (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), (2, 3, 8, 10)),
    "mean_2d_divided": (lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=5), (2, 3, 7, 9)),
    "mean_3d": (lambda x: F.avg_pool3d(x, 3, 2, 1), (2, 2, 5, 6, 7)),
    "of_a_transpose": (lambda x: F.max_pool2d(x.transpose(2, 3), 2), (2, 3, 6, 8)),
    "of_a_slice": (lambda x: F.avg_pool2d(x[:, 1:, :, ::2], 2), (2, 3, 6, 8)),
    "twice": (lambda x: F.max_pool2d(F.max_pool2d(x, 2), 2), (2, 3, 8, 8)),
    "then_pointwise": (lambda x: F.gelu(F.avg_pool2d(x, 2) * 2 + 1), (2, 3, 8, 8)),
    "around": (lambda x: F.max_pool2d(torch.tanh(x), 2) + F.avg_pool2d(x.abs(), 2), (2, 3, 8, 8)),
    "residual": (lambda x: F.max_pool2d(x * 2, 3, 1, 1) + x, (2, 3, 6, 8)),
    "then_mean": (lambda x: torch.tanh(F.max_pool2d(x, 2).mean((2, 3), keepdim=True)), (2, 3, 8, 8)),
    "then_softmax_of_channels": (lambda x: torch.softmax(F.max_pool2d(x, 2), 1), (2, 5, 8, 8)),
    "then_logsumexp": (lambda x: torch.logsumexp(F.max_pool3d(x, 2, 2), 1, keepdim=True).relu(), (2, 4, 4, 4, 6)),
    "then_sum_of_all": (lambda x: torch.sigmoid(F.avg_pool2d(x, 2)).sum((1, 2, 3)), (2, 3, 8, 8)),
    "then_layer_norm": (lambda x: F.layer_norm(F.avg_pool1d(x, 2), (8,)), (2, 3, 16)),
    "then_flat": (lambda x: F.max_pool2d(x, 2).flatten(1) * 3, (2, 3, 8, 8)),
    "then_maximum": (lambda x: F.gelu(F.avg_pool1d(x.unsqueeze(1), 4).squeeze(1)).max(dim=1).values, (4, 32)),
}  # fmt: skip


def kernels(program: Program) -> list[str]:
    """What kernels do the work, in order."""
    return [step.entry for step in program.steps if isinstance(step, KernelStep)]


def calls(program: Program) -> list[str]:
    """What is left to the library."""
    return [step.op for step in program.steps if isinstance(step, LibraryStep) and "pool" in step.op]


@pytest.mark.parametrize("name", POOLS)
def test_a_pool_is_right_in_every_plan(name: str, simulated_h200: Device) -> None:
    function, shape = POOLS[name]
    this = captured(Function(function), torch.randn(shape))
    ways = blueprints(this.problem)
    for way in ways:
        assert complaints(this, build(this.problem, way), simulated_h200) == [], way.name
    left = calls(build(this.problem, ways[0]))
    # What lies beyond the padding counts by a rule of its own, which stays with the library.
    assert bool(left) == (name == "mean_2d_ceil_padded"), left


@pytest.mark.parametrize("name", POOLS)
def test_it_binds_to_other_shapes(name: str) -> None:
    function, shape = POOLS[name]
    this = captured(Function(function), torch.randn(shape))
    twin = twin_of(this)
    if twin is None:
        pytest.skip("it runs at no smaller shapes")
    program = build(this.problem, blueprints(this.problem, twin.problem)[0], twin.problem)
    for problem in (this.problem, twin.problem):
        assert [d.message for d in validate(program, problem, gpu_named("h200"))[1]] == []


@pytest.mark.parametrize(
    "name", ["then_pointwise", "then_mean", "then_softmax_of_channels", "then_logsumexp"]
)
def test_what_follows_is_in_the_pools_kernel(name: str) -> None:
    function, shape = POOLS[name]
    problem = captured(Function(function), torch.randn(shape)).problem
    assert len(kernels(build(problem, blueprints(problem)[0]))) == 1


def test_one_plan_leaves_pools_to_the_library_and_says_so_by_its_name() -> None:
    problem = captured(Function(POOLS["around"][0]), torch.randn(2, 3, 8, 8)).problem
    (around,) = [way for way in blueprints(problem) if way.fusion is FusionLevel.NO_WINDOWS]
    assert around.name == "fused_around_windows" and "window" not in around.recipes
    assert len(calls(build(problem, around))) == 2
    assert "window" in blueprints(problem)[0].recipes


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["max_2d_padded", "mean_2d_inside"])
def test_other_dtypes(name: str, dtype: torch.dtype, simulated_h200: Device) -> None:
    function, shape = POOLS[name]
    this = captured(Function(function), torch.randn(shape).to(dtype))
    assert complaints(this, build(this.problem, blueprints(this.problem)[0]), simulated_h200) == []


@pytest.mark.parametrize("special", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("name", ["max_2d_padded", "mean_2d_inside"])
def test_what_is_no_number_comes_through_as_in_pytorch(
    name: str, special: float, simulated_h200: Device
) -> None:
    function, shape = POOLS[name]
    x = torch.randn(shape)
    x[0, 0, 2:5, 3] = special
    x[1, 2] = special
    this = captured(Function(function), x)
    assert complaints(this, build(this.problem, blueprints(this.problem)[0]), simulated_h200) == []


def test_channels_last_input_is_read_as_it_lies(simulated_h200: Device) -> None:
    x = torch.randn(2, 8, 6, 6).to(memory_format=torch.channels_last)
    this = captured(Function(lambda x: F.max_pool2d(x, 2) + 1), x)
    program = build(this.problem, blueprints(this.problem)[0])
    assert complaints(this, program, simulated_h200) == []
    assert (
        len(program.steps) == len([s for s in program.steps if isinstance(s, KernelStep)]) + 1
    )  # a view of the result


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(6, 6, 3, groups=6),
        nn.Conv2d(6, 6, 3, 2, 1, groups=6, bias=False),
        nn.Conv2d(6, 6, (3, 1), 1, (2, 0), (2, 1), groups=6),
        nn.Conv1d(6, 6, 5, padding=2, groups=6),
        nn.Conv3d(6, 6, 3, padding=1, groups=6),
    ],
    ids=["plain", "strided", "dilated", "1d", "3d"],
)
def test_a_depthwise_convolution_is_a_window_with_weights(layer: nn.Module, simulated_h200: Device) -> None:
    rank = next(iter(layer.parameters())).dim() - 2
    model = nn.Sequential(layer, nn.GELU())
    this = captured(model, torch.randn(2, 6, *(9, 8, 7)[:rank]))
    program = build(this.problem, blueprints(this.problem)[0])
    assert complaints(this, program, simulated_h200) == []
    assert len(kernels(program)) == 1 and len(program.steps) == 1


@pytest.mark.parametrize(
    "layer",
    [nn.Conv2d(4, 8, 3, groups=4), nn.Conv2d(4, 4, 3), nn.Conv2d(4, 4, 13, groups=4), nn.Conv2d(1, 1, 3)],
    ids=["more filters", "full", "long", "one channel"],
)
def test_other_convolutions_stay_with_the_library(layer: nn.Conv2d, simulated_h200: Device) -> None:
    this = captured(nn.Sequential(layer, nn.ReLU()), torch.randn(2, layer.in_channels, 16, 16))
    program = build(this.problem, blueprints(this.problem)[0])
    assert any(isinstance(s, LibraryStep) and "convolution" in s.op for s in program.steps)
    assert complaints(this, program, simulated_h200) == []


def test_equal_blocks_share_one_kernel() -> None:
    class Deep(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(3):
                x = torch.relu(F.max_pool2d(x, 3, 1, 1))
            return x

    problem = captured(Deep(), torch.randn(2, 4, 8, 8)).problem
    program = build(problem, blueprints(problem)[0])
    assert len(kernels(program)) == 3 and len(set(kernels(program))) == 1
    assert program.source.count("__global__") == 1
