"""Regions that read along one dimension and write along another: tiles through shared memory, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from memory.records import KernelStep
from tests.tools.recipes.subjects import Function, captured, complaints, twin_of
from tools.devices.port import Device
from tools.gpus import gpu_named
from tools.program import validate
from tools.recipes.blueprints import blueprints, build
from tools.recipes.kernels import Variant

CROSSING: dict[str, tuple[Callable[..., torch.Tensor], tuple[tuple[int, ...], ...]]] = {
    "transposed": (lambda x: x.t().contiguous() * 2, ((37, 65),)),
    "heads": (lambda x: torch.relu(x.view(2, 9, 3, 8).transpose(1, 2)).contiguous(), ((2, 9, 24),)),
    "channels_first": (
        lambda x, b: torch.tanh(x.permute(0, 3, 1, 2) + b).contiguous(),
        ((2, 5, 7, 40), (40, 1, 1)),
    ),
    "two_inputs": (lambda x, y: (x.transpose(1, 2) + y).contiguous(), ((3, 33, 34), (3, 34, 33))),
    "one_row": (lambda x: x.transpose(1, 2).contiguous() + 1, ((3, 1, 34),)),
    "two_results": (lambda x: torch.stack((x.t() + 1, x.t() * 2)), ((40, 33),)),
}


@pytest.mark.parametrize("name", CROSSING)
def test_a_crossing_region_is_right_in_every_plan(name: str, simulated_h200: Device) -> None:
    function, shapes = CROSSING[name]
    this = captured(Function(function), *(torch.randn(shape) for shape in shapes))
    for way in blueprints(this.problem):
        assert complaints(this, build(this.problem, way), simulated_h200) == [], way.name


@pytest.mark.parametrize("name", ["transposed", "channels_first", "two_inputs"])
def test_the_first_plan_takes_tiles_and_binds_to_other_shapes(name: str) -> None:
    function, shapes = CROSSING[name]
    this = captured(Function(function), *(torch.randn(shape) for shape in shapes))
    twin = twin_of(this)
    way = blueprints(this.problem, twin.problem if twin else None)[0]
    assert Variant.TILED in way.variants.values() and "tiled" in way.recipes
    program = build(this.problem, way, twin.problem if twin else None)
    assert [s.entry for s in program.steps if isinstance(s, KernelStep)] == ["r0_tiled"]
    for problem in (this.problem, *((twin.problem,) if twin else ())):
        assert [d.message for d in validate(program, problem, gpu_named("h200"))[1]] == []


@pytest.mark.parametrize("name", ["heads", "plain"])
def test_a_region_whose_neighbours_stay_neighbours_takes_no_tiles(name: str) -> None:
    function, shapes = CROSSING.get(name, (lambda x: x.t() * 2, ((37, 65),)))
    problem = captured(Function(function), *(torch.randn(shape) for shape in shapes)).problem
    assert all(Variant.TILED not in way.variants.values() for way in blueprints(problem))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int64])
def test_other_dtypes(dtype: torch.dtype, simulated_h200: Device) -> None:
    x = (torch.randn(2, 35, 36) * 10).to(dtype)
    this = captured(Function(lambda x: (x + 1).transpose(1, 2).contiguous()), x)
    assert complaints(this, build(this.problem, blueprints(this.problem)[0]), simulated_h200) == []


def test_an_empty_dimension(simulated_h200: Device) -> None:
    this = captured(Function(lambda x: x.transpose(1, 2).contiguous() + 1), torch.randn(0, 3, 5))
    for way in blueprints(this.problem):
        assert complaints(this, build(this.problem, way), simulated_h200) == [], way.name
