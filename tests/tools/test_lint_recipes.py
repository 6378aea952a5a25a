"""Static analysis says nothing about the recipes' programs: every variant, at small sizes and beyond 32-bit indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from memory.records import DType, Problem, Program, TensorSpec
from tests.tools.recipes.subjects import Function, captured, with_variant
from tools.binding import BoundPlan, bind
from tools.lint import lint_plan
from tools.recipes.blueprints import blueprints, build
from tools.recipes.kernels import Variant

ROWS, COLS = 66, 264
LARGE = {ROWS: 66_000, COLS: 264_000}
"""17 billion elements."""
ROW_VARIANTS = [v for v in Variant if not v.name.startswith(("COLUMNS", "VECTOR"))]


def enlarged(problem: Problem) -> Problem:
    """The same graph with larger rows and columns; no tensor of that size is ever made."""
    values = {
        name: TensorSpec.dense(tuple(LARGE.get(size, size) for size in spec.shape), spec.dtype)
        for name, spec in problem.graph.values.items()
    }
    return problem.model_copy(update={"graph": problem.graph.model_copy(update={"values": values})})


def said(plan: BoundPlan) -> list[str]:
    return [f"{f.severity} {f.rule} line {f.line}: {f.message}" for f in lint_plan(plan)]


def plans(problem: Problem, program: Program) -> Iterator[BoundPlan]:
    yield bind(program, problem)
    yield bind(program, enlarged(problem))


def norm_and_softmax(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Reductions along the rows, with a residual and per-row results."""
    return torch.softmax(F.layer_norm(x, (x.shape[-1],), w), -1) + x, x.amax(-1)


@pytest.mark.parametrize("variant", ROW_VARIANTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_row_recipes_are_clean_at_any_size(variant: Variant, dtype: torch.dtype) -> None:
    x, w = torch.randn(ROWS, COLS).to(dtype), torch.randn(COLS).to(dtype)
    subject = captured(Function(norm_and_softmax), x, w)
    for plan in plans(subject.problem, with_variant(subject.problem, variant)):
        assert said(plan) == []


@pytest.mark.parametrize("variant", [Variant.COLUMNS, Variant.COLUMNS_MULTI_PASS])
def test_column_recipes_are_clean_at_any_size(variant: Variant) -> None:
    module = Function(lambda x: (torch.softmax(x, 0) + x, x.std(0)))
    subject = captured(module, torch.randn(ROWS, COLS))
    for plan in plans(subject.problem, with_variant(subject.problem, variant)):
        assert said(plan) == []


@pytest.mark.parametrize(
    "function",
    [
        lambda x, b: torch.relu(x + b) * torch.sigmoid(x),
        lambda x, b: torch.tanh(x.t().contiguous()) + b[:, None],
        lambda x, b: (x > 0, x.to(torch.float16), x[:, 1:] * x[:, :-1] + b[1:]),
    ],
)
def test_pointwise_recipes_are_clean_at_any_size_and_tunable(function: Callable[..., object]) -> None:
    subject = captured(Function(function), torch.randn(ROWS, COLS), torch.randn(COLS))
    program = build(subject.problem, blueprints(subject.problem)[0])
    for values in ({}, {"R0_VEC": 1, "R0_ITEMS": 8}, {"R0_VEC": 4, "R0_BLOCK": 64}):
        known = {name: value for name, value in values.items() if name in program.tunable_values()}
        for plan in plans(subject.problem, program.with_values(known)):
            assert said(plan) == []


def test_a_network_with_library_calls_is_clean() -> None:
    module = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2),
        nn.BatchNorm2d(8, track_running_stats=False),
        nn.ReLU(),
        nn.Flatten(1),
        nn.Linear(72, 4),
    )
    subject = captured(module, torch.randn(4, 3, 8, 8))
    for blueprint in blueprints(subject.problem):
        assert said(bind(build(subject.problem, blueprint), subject.problem)) == []


def test_the_enlarged_problem_is_beyond_32_bits() -> None:
    subject = captured(Function(lambda x: torch.relu(x)), torch.randn(ROWS, COLS))
    spec = enlarged(subject.problem).graph.values[subject.problem.graph.inputs[0]]
    assert spec.dtype is DType.F32
    assert spec.elements > 2**32
