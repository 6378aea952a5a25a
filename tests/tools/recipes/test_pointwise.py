"""The pointwise family against PyTorch: every operation, odd shapes, dtypes, views and special values."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from memory.records import KernelStep
from tests.tools.recipes.subjects import Function, captured, complaints
from tools.devices.port import Device
from tools.recipes.blueprints import FusionLevel, blueprints, build


def activations(x: torch.Tensor) -> torch.Tensor:
    """Every activation once."""
    y = (
        F.leaky_relu(x, 0.1)
        + F.elu(x)
        + F.hardtanh(x)
        + F.softplus(x)
        + F.gelu(x)
        + F.gelu(x, approximate="tanh")
    )
    y = (
        y * F.mish(x)
        + F.silu(x)
        + F.hardswish(x)
        + F.hardsigmoid(x)
        + F.relu6(x)
        + F.selu(x)
        + F.celu(x, 0.7)
    )
    return y + F.logsigmoid(x) + F.threshold(x, 0.1, 2.0) + F.softshrink(x) + F.hardshrink(x) + torch.tanh(x)


def arithmetic(x: torch.Tensor) -> torch.Tensor:
    """Arithmetic, rounding, powers and selections."""
    y = torch.where(x > 0.1, x, -x) + torch.clamp(x, -0.5, 0.6) + torch.clamp_min(x, 0.2)
    y = (
        y
        + torch.maximum(x, y)
        + torch.minimum(x, y)
        + torch.lerp(x, y, 0.3)
        + torch.addcmul(x, x, y, value=0.5)
    )
    y = y + torch.addcdiv(x, y, x.abs() + 1) + x.floor() + x.ceil() + x.round() + x.sign() + torch.frac(x)
    y = (
        y
        + torch.rsqrt(x.abs() + 1)
        + x.pow(3)
        + torch.pow(x.abs(), 1.7)
        + (2 - x)
        + 1 / (x + 10)
        - x.remainder(0.7)
    )
    return (
        y
        + x.masked_fill(x < 0, 3.0)
        + torch.erf(x)
        + torch.sin(x)
        + torch.log1p(x.abs())
        + torch.xlogy(x, x.abs() + 1)
    )


@pytest.mark.parametrize("function", [activations, arithmetic])
@pytest.mark.parametrize(
    ("shape", "dtype"), [((4, 32), torch.float32), ((3, 5), torch.float64), ((1,), torch.float32)]
)
def test_every_operation_agrees_with_pytorch(
    function: Callable[..., object], shape: tuple[int, ...], dtype: torch.dtype, simulated_h200: Device
) -> None:
    subject = captured(Function(function), torch.randn(shape, generator=torch.manual_seed(0)).to(dtype))
    program = build(subject.problem, blueprints(subject.problem)[0])
    assert len(program.steps) <= 2
    assert complaints(subject, program, simulated_h200) == []


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float_and_rounded_once(
    dtype: torch.dtype, simulated_h200: Device
) -> None:
    subject = captured(Function(lambda x: F.gelu(x) * torch.sigmoid(x)), torch.randn(4, 24).to(dtype))
    program = build(subject.problem, blueprints(subject.problem)[0])
    assert program.source.startswith("#include <cuda_")
    assert complaints(subject, program, simulated_h200) == []


def test_integers_and_booleans_follow_pytorch_promotion(simulated_h200: Device) -> None:
    def mixed(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x * 3 + 2, x > 1, (x > 1) & (x < 3), x.float() / 2, x / 2, ~x, x.to(torch.int8) - x, x == 1.5

    subject = captured(Function(mixed), torch.randint(-5, 5, (4, 9)))
    program = build(subject.problem, blueprints(subject.problem)[0])
    assert len(program.steps) == 1
    assert complaints(subject, program, simulated_h200) == []


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda x, y, z: x * y + z, [torch.randn(3, 7, 8), torch.randn(7, 1), torch.randn(3, 1, 8)]),
        (lambda x, y: x[:, None] * y[None, :], [torch.randn(5), torch.randn(6)]),
        (lambda x, y: torch.relu(x.permute(0, 2, 1)) + y, [torch.randn(3, 7, 8), torch.randn(3, 8, 7)]),
        (lambda x: torch.relu(x.permute(0, 2, 1)), [torch.randn(3, 7, 8)]),
        (lambda x, y: torch.relu(x) + y, [torch.randn(3, 7, 8).transpose(1, 2), torch.randn(8, 7)]),
        (lambda x: torch.relu(x[:, 1:]) * x[:, :-1] + x[:, -1:], [torch.randn(3, 8)]),
        (lambda x: x.view(2, 3, 4).transpose(0, 1).reshape(3, 8) + 1, [torch.randn(6, 4)]),
        (lambda x: torch.relu(x) + torch.relu(x).T, [torch.randn(4, 4)]),
        (lambda x: torch.relu(x), [torch.randn(0, 3)]),
        (lambda x: torch.relu(x) + torch.ones_like(x) * torch.full((3,), 2.0), [torch.randn(2, 3)]),
    ],
)
def test_broadcasting_and_views_need_no_copies_to_be_right(
    function: Callable[..., object], inputs: list[torch.Tensor], simulated_h200: Device
) -> None:
    subject = captured(Function(function), *inputs)
    for blueprint in blueprints(subject.problem):
        assert complaints(subject, build(subject.problem, blueprint), simulated_h200) == []


def test_nan_and_infinities_end_where_pytorch_puts_them(simulated_h200: Device) -> None:
    def special(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.flip(x, (0,))
        return (
            torch.relu(x),
            torch.clamp(x, -1, 1),
            torch.maximum(x, y),
            torch.minimum(x, y),
            torch.isnan(x),
            torch.sign(x),
        )

    x = torch.tensor([float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 3.0, float("nan")])
    subject = captured(Function(special), x)
    assert complaints(subject, build(subject.problem, blueprints(subject.problem)[0]), simulated_h200) == []


def test_every_tunable_point_is_right(simulated_h200: Device) -> None:
    subject = captured(Function(lambda x, b: torch.relu(x + b)), torch.randn(9, 24), torch.randn(24))
    program = build(subject.problem, blueprints(subject.problem)[0])
    for values in ({"R0_VEC": 1, "R0_ITEMS": 8}, {"R0_VEC": 8, "R0_BLOCK": 64}, {"R0_VEC": 2, "R0_ITEMS": 2}):
        assert complaints(subject, program.with_values(values), simulated_h200) == []


def test_a_chain_of_operations_becomes_one_kernel_and_the_library_plan_has_none() -> None:
    subject = captured(Function(lambda x: torch.tanh(x * torch.sigmoid(x) + 1)), torch.randn(4, 8))
    first, *_, last = blueprints(subject.problem)
    assert len(build(subject.problem, first).entries) == 1
    assert last.fusion is FusionLevel.LIBRARY_ONLY
    assert not [s for s in build(subject.problem, last).steps if isinstance(s, KernelStep)]
