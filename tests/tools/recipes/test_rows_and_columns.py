"""Reductions against PyTorch in every thread layout, at odd sizes, in every dtype, and at other shapes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from tests.tools.recipes.subjects import Function, captured, complaints, with_variant
from tools.devices.port import Device
from tools.recipes.kernels import Variant

ROWS = (
    Variant.WARP_PER_ROW,
    Variant.BLOCK_PER_ROW,
    Variant.SHARED_ROW,
    Variant.MULTI_PASS,
    Variant.SPLIT_ROW,
)
COLUMNS = (Variant.COLUMNS, Variant.COLUMNS_MULTI_PASS)


def chain(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Two normalisations in a row, with a residual, a weight and per-row results."""
    y = F.layer_norm(x, (x.shape[-1],), w)
    return torch.softmax(y * 2, -1) + x, y.amax(-1), x.sum(-1, keepdim=True)


def reductions(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Every reduction along the last dimension."""
    first = (
        x.sum(-1),
        x.mean(-1),
        x.std(-1),
        x.var(-1, unbiased=False),
        x.amax(-1),
        x.min(-1)[0],
        x.norm(dim=-1),
    )
    return (
        *first,
        x.prod(-1),
        torch.logsumexp(x, -1),
        torch.log_softmax(x, -1),
        (x > 0).any(-1),
        (x > 0).all(-1),
    )


@pytest.mark.parametrize("variant", ROWS)
@pytest.mark.parametrize(
    ("width", "dtype"),
    [(132, torch.float32), (33, torch.float32), (1, torch.float32), (64, torch.float16), (31, torch.float64)],
)
def test_normalisations_in_a_row_fuse_and_agree(
    variant: Variant, width: int, dtype: torch.dtype, simulated_h200: Device
) -> None:
    torch.manual_seed(0)
    subject = captured(Function(chain), torch.randn(3, 5, width).to(dtype), torch.randn(width).to(dtype))
    assert complaints(subject, with_variant(subject.problem, variant), simulated_h200) == []


@pytest.mark.parametrize("variant", ROWS)
def test_every_reduction_agrees(variant: Variant, simulated_h200: Device) -> None:
    torch.manual_seed(0)
    subject = captured(Function(reductions), torch.randn(3, 11))
    assert complaints(subject, with_variant(subject.problem, variant), simulated_h200) == []


@pytest.mark.parametrize("variant", [Variant.WARP_PER_ROW, Variant.MULTI_PASS, Variant.SPLIT_ROW])
def test_special_values_spread_as_in_pytorch(variant: Variant, simulated_h200: Device) -> None:
    nan, inf = float("nan"), float("inf")
    rows = torch.tensor(
        [[1.0, nan, 3.0], [inf, 2.0, 1.0], [-inf, 0.0, 0.0], [-inf, -inf, -inf], [1.0, 2.0, inf]]
    )
    module = Function(lambda x: (x.amax(-1), x.amin(-1), torch.softmax(x, -1), torch.logsumexp(x, -1)))
    subject = captured(module, rows)
    assert complaints(subject, with_variant(subject.problem, variant), simulated_h200) == []


@pytest.mark.parametrize("variant", [Variant.BLOCK_PER_ROW, Variant.MULTI_PASS, Variant.SPLIT_ROW])
def test_whole_tensor_losses_agree(variant: Variant, simulated_h200: Device) -> None:
    def losses(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.mse_loss(x, y), F.smooth_l1_loss(x, y), F.huber_loss(x, y, delta=0.3), (x - y).abs().sum()

    torch.manual_seed(0)
    subject = captured(Function(losses), torch.randn(6, 11), torch.randn(6, 11))
    program = with_variant(subject.problem, variant)
    assert complaints(subject, program, simulated_h200) == []
    splits = {t.name: 4 for t in program.tunables if t.name.endswith("SPLITS")}
    assert complaints(subject, program.with_values(splits), simulated_h200) == []


@pytest.mark.parametrize("variant", ROWS)
@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.GroupNorm(4, 8), nn.ReLU()),
        nn.Sequential(nn.BatchNorm2d(8, track_running_stats=False), nn.ReLU()),
        nn.InstanceNorm2d(8, affine=True),
    ],
)
def test_normalisations_of_images_agree_and_bind_to_other_sizes(
    variant: Variant, module: nn.Module, simulated_h200: Device
) -> None:
    torch.manual_seed(0)
    subject, other = captured(module, torch.randn(2, 8, 4, 6)), captured(module, torch.randn(3, 8, 5, 7))
    program = with_variant(subject.problem, variant, other.problem)
    assert complaints(subject, program, simulated_h200) == []
    assert complaints(other, program, simulated_h200, sanitize=False) == []


@pytest.mark.parametrize("variant", COLUMNS)
@pytest.mark.parametrize(
    ("function", "shape", "dtype"),
    [
        (lambda x: (torch.softmax(x, 1) + x, x.mean(1), torch.logsumexp(x, 1)), (3, 40, 4, 6), torch.float32),
        (lambda x: (x - x.mean(0)) / x.std(0), (50, 12), torch.float32),
        (lambda x: x / torch.sqrt(x.pow(2).mean(1, keepdim=True) + 1e-5), (3, 16, 3, 5), torch.float64),
        (lambda x: torch.softmax(x, 1), (3, 16, 4, 8), torch.bfloat16),
        (lambda x: x.sum((0, 1)), (3, 16, 8), torch.float32),
        (lambda x: F.batch_norm(x, None, None, training=True), (40, 16), torch.float32),
    ],
)
def test_reductions_over_dimensions_that_are_not_innermost_agree(
    variant: Variant,
    function: Callable[..., object],
    shape: tuple[int, ...],
    dtype: torch.dtype,
    simulated_h200: Device,
) -> None:
    torch.manual_seed(0)
    subject = captured(Function(function), torch.randn(shape).to(dtype))
    program = with_variant(subject.problem, variant)
    assert all(entry.endswith("columns") for entry in program.entries)
    assert complaints(subject, program, simulated_h200) == []


def test_a_softmax_reads_its_input_from_memory_once() -> None:
    subject = captured(Function(lambda x: torch.softmax(x * 2, -1)), torch.randn(8, 256))
    program = with_variant(subject.problem, Variant.BLOCK_PER_ROW)
    assert program.source.count("= load_pack<") == 1
    assert len(program.steps) == 1


def test_dimensions_that_every_access_walks_alike_become_one_loop() -> None:
    subject = captured(nn.GroupNorm(4, 8), torch.randn(2, 8, 5, 6))
    program = with_variant(subject.problem, Variant.WARP_PER_ROW)
    assert (
        "R0_C1" in program.dims and "R0_C2" not in program.dims
    )  # channels of a group; height and width together
