"""Any module that can be captured gets a right plan, of library calls alone where need be, which gains nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from memory.records import LibraryStep, Timing
from tests.tools.recipes.gallery import GALLERY, made
from tests.tools.recipes.subjects import Captured, Function, captured, complaints, twin_of
from tools.baselines import modelled_eager
from tools.binding import bind
from tools.devices.modelling import model_plan
from tools.devices.port import Device
from tools.gpus import gpu_named
from tools.program import validate
from tools.recipes.blueprints import FusionLevel, blueprints, build
from tools.roofline import demand, eager_times, floor_us

H200 = gpu_named("h200")
pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning"
)  # torch's own about the modules, as users get them


@cache
def subject(name: str) -> Captured:
    """A module of the gallery, captured."""
    return captured(*made(name))


@pytest.mark.parametrize("name", GALLERY)
def test_every_plan_of_any_module_is_right_and_one_calls_the_library_alone(
    name: str, simulated_h200: Device
) -> None:
    this = subject(name)
    ways = blueprints(this.problem)
    assert ways[-1].fusion is FusionLevel.LIBRARY_ONLY
    program = build(this.problem, ways[-1])
    assert program.prepare == () and all(isinstance(step, LibraryStep) for step in program.steps)
    for way in ways:
        assert complaints(this, build(this.problem, way), simulated_h200, sanitize=False) == [], way.name


@pytest.mark.parametrize("name", GALLERY)
def test_every_plan_of_any_module_binds_to_its_twin(name: str) -> None:
    this = subject(name)
    twin = twin_of(this)
    if twin is None:
        pytest.skip("it runs at no smaller shapes")
    for way in blueprints(this.problem, twin.problem):
        program = build(this.problem, way, twin.problem)
        for problem in (this.problem, twin.problem):
            assert [d.message for d in validate(program, problem, H200)[1]] == [], way.name


@pytest.mark.parametrize("name", GALLERY)
def test_calling_the_same_library_is_never_an_improvement_and_eager_never_below_the_floor(name: str) -> None:
    problem = subject(name).problem
    measured = model_plan(bind(build(problem, blueprints(problem)[-1]), problem), {}, {}, H200)
    eager = modelled_eager(problem.graph, H200)
    floor = floor_us(problem.work, problem.dtype, H200)
    timing = Timing(
        source="modelled",
        device="simulator:h200",
        median_us=measured.median_us,
        low_us=measured.low_us,
        high_us=measured.high_us,
        floor_us=floor,
        baselines=(eager,),
    )
    assert not timing.improved
    assert timing.speedup <= 1.001
    assert eager.median_us >= floor
    # Not even where launches are free, so that no small size hides a wrong count.
    assert demand(eager_times(problem.graph, replace(H200, launch_us=0.0))).device_us >= floor


@pytest.mark.parametrize("name", ["chunk", "unfold", "tensor_unfold", "interpolate_bicubic", "embedding_bag"])
def test_sizes_that_follow_the_shapes_by_no_plain_rule_still_compute_at_the_twins_shapes(
    name: str, simulated_h200: Device
) -> None:
    this = subject(name)
    twin = twin_of(this)
    assert twin is not None
    program = build(this.problem, blueprints(this.problem)[-1], twin.problem)
    assert complaints(twin, program, simulated_h200, sanitize=False) == []


def test_uninitialised_memory_is_captured_as_zeros() -> None:
    def shifted(x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        y[:, 0] = 0
        y[:, 1:] = x[:, :-1]
        return y

    nodes = captured(Function(shifted), torch.randn(4, 5)).problem.graph.nodes
    assert nodes[0].op == "aten.zeros_like.default"
    assert not any("empty" in node.op for node in nodes)


@pytest.mark.parametrize("pad", [(1, 2), (0, 1, 2, 0), (-1, 2, 1, -2), (2, 2, 1, 1)])
def test_circular_padding_is_captured_as_concatenations_of_the_same_values(pad: tuple[int, ...]) -> None:
    module = Function(lambda x: F.pad(x, pad, mode="circular"))
    x = torch.randn(2, 5, 6) if len(pad) == 2 else torch.randn(2, 3, 5, 6)
    graph = captured(module, x).problem.graph
    assert {node.op for node in graph.nodes} <= {"aten.slice.Tensor", "aten.cat.default"}
    assert graph.values[graph.outputs[0]].shape == tuple(module(x).shape)


def test_a_kernel_that_only_saves_the_library_a_constant_is_not_proposed() -> None:
    lstm = subject("lstm").problem
    assert [way.name for way in blueprints(lstm)] == ["library"]
    normalised = subject("spectral_norm").problem
    assert len(blueprints(normalised)) > 1
