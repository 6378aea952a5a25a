"""The comparison of tools.correctness on tensors, wherever they lie: for results too large to be brought to the host.

Invariant: the same verdict as tools.correctness.compare on the same values, except that above SAMPLE elements the
scale's median is that of an evenly spaced sample. Works in slices, so that 64 M elements need no 64 M temporaries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from memory.records import Diagnostic, DType, Stage, TrialError
from tools.arrays import array_from
from tools.correctness import MEDIAN_FACTOR, SMALLEST_NORMAL, Comparison, Subject, Tolerance, compare
from tools.error_patterns import describe_pattern, describe_size

SAMPLE = 1 << 20
"""Elements that the scale's median is taken of."""
SLICE = 1 << 24
"""Elements compared at a time."""
EXPLAINED = 1 << 22
"""Up to this many elements a mismatch is described by the host's own comparison."""


@dataclass(frozen=True)
class TensorSubject:
    """What is compared: an output of one trial, with the oracle's values and eager's, on one device."""

    output: str
    about: str
    """The trial, such as `normal at full size`."""
    oracle: torch.Tensor
    """float64, or the output's own integer type."""
    eager: torch.Tensor
    """In the output's own dtype."""
    dtype: DType


@dataclass
class _Tally:
    """What the slices add up to."""

    wrong: int = 0
    worst: float = 0.0
    worst_at: int = -1
    special_wrong: bool = False


def compare_tensors(mine: torch.Tensor, subject: TensorSubject, tolerance: Tolerance) -> Comparison:
    """Judge `mine`, a tensor of the subject's shape and dtype on the same device."""
    flat = (mine.reshape(-1), subject.oracle.reshape(-1), subject.eager.reshape(-1))
    if not subject.dtype.is_floating:
        eager_error, allowed, tally = 0.0, 0.0, _count_exact(*flat)
    else:
        typical = _typical(flat[1], flat[2], SMALLEST_NORMAL[subject.dtype])
        eager_error = max((float(e.max()) for e in _eager_errors(flat[1], flat[2], typical)), default=0.0)
        allowed = max(tolerance.relative, tolerance.factor * eager_error)
        tally = _count(*flat, typical, allowed)
    finite = not tally.special_wrong and tally.worst == tally.worst and tally.worst != float("inf")
    record = TrialError(
        distribution=subject.about,
        output=subject.output,
        error=tally.worst if finite else None,
        eager_error=eager_error,
        allowed=allowed,
    )
    return Comparison(record, _complaint(mine, subject, tolerance, record, tally) if tally.wrong else None)


def largest_error(mine: torch.Tensor, theirs: torch.Tensor) -> float:
    """Largest error of float64 `mine` by the measure of tools.correctness; infinite where only one is finite."""
    mine, theirs = mine.reshape(-1), theirs.reshape(-1)
    if mine.shape != theirs.shape:
        return float("inf")
    if not theirs.is_floating_point():
        return 0.0 if torch.equal(mine, theirs) else float("inf")
    same = (mine == theirs) | (mine.isnan() & theirs.isnan())
    finite = theirs.isfinite() & mine.isfinite()
    if bool((~same & ~finite).any()):
        return float("inf")
    scale = torch.maximum(theirs.abs(), torch.tensor(_typical(theirs, theirs), device=theirs.device))
    errors = torch.where(same, 0.0, (mine - theirs).abs() / torch.where(scale > 0, scale, 1.0))
    return float(errors.max()) if errors.numel() else 0.0


def _slices(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    for start in range(0, tensors[0].numel(), SLICE):
        yield tuple(t[start : start + SLICE] for t in tensors)


def _typical(oracle: torch.Tensor, eager: torch.Tensor, smallest: float = 0.0) -> float:
    """The scale below which errors are absolute: rms of the judged values, at most MEDIAN_FACTOR medians.

    smallest: magnitudes below it count as zero, unless all are.
    """
    squares, judged = 0.0, 0
    for expected, own in _slices(oracle, eager):
        valid = expected.isfinite() & own.isfinite()
        squares += float(torch.where(valid, expected, 0.0).square().sum())
        judged += int(valid.sum())
    if not judged or not squares:
        return 0.0
    step = -(-oracle.numel() // SAMPLE)
    sample, own = oracle[::step], eager[::step]
    sizes = sample[sample.isfinite() & own.isfinite()].abs()
    held = sizes >= smallest
    sizes = sizes[held] if smallest and bool(held.any()) else sizes[sizes > 0]
    rms = math.sqrt(squares / judged)
    return float(min(rms, MEDIAN_FACTOR * _median(sizes))) if sizes.numel() else rms


def _median(values: torch.Tensor) -> float:
    """The mean of the two middle values, as NumPy has it; torch's own takes the lower one."""
    ordered = values.sort().values
    count = ordered.numel()
    return float((ordered[(count - 1) // 2] + ordered[count // 2]) / 2)


def _scaled(expected: torch.Tensor, typical: float) -> torch.Tensor:
    scale = expected.abs().clamp_min(typical)
    return torch.where(scale.isfinite() & (scale > 0), scale, 1.0)


def _eager_errors(oracle: torch.Tensor, eager: torch.Tensor, typical: float) -> Iterator[torch.Tensor]:
    for expected, own in _slices(oracle, eager):
        valid = expected.isfinite() & own.isfinite()
        yield torch.where(valid, (own.double() - expected).abs() / _scaled(expected, typical), 0.0)


def _count(
    mine: torch.Tensor, oracle: torch.Tensor, eager: torch.Tensor, typical: float, allowed: float
) -> _Tally:
    tally, start = _Tally(), 0
    for values, expected, own in _slices(mine, oracle, eager):
        outside, special, errors = _judged(values.double(), expected, own.double(), typical, allowed)
        tally.wrong += int(outside.sum() + special.sum())
        tally.special_wrong |= bool(special.any())
        ranked = torch.where(special | errors.isnan(), float("inf"), errors)
        worst, at = ranked.max(dim=0)
        if float(worst) > tally.worst or tally.worst_at < 0:
            tally.worst, tally.worst_at = float(worst), start + int(at)
        start += values.numel()
    return tally


def _judged(
    values: torch.Tensor, oracle: torch.Tensor, eager: torch.Tensor, typical: float, allowed: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Where float64 values are off, where NaN or infinities do not agree, and every error."""
    judged = oracle.isfinite() & eager.isfinite()
    errors = torch.where(judged, (values - oracle).abs() / _scaled(oracle, typical), 0.0)
    # NaN compares false with everything, so ask for "not within" rather than "beyond".
    outside = judged & ~(errors <= allowed)
    special = ~judged & ~_same_special(values, oracle, eager)
    return outside, special, errors


def _same_special(values: torch.Tensor, oracle: torch.Tensor, eager: torch.Tensor) -> torch.Tensor:
    """Where the oracle or eager is not finite: the candidate must agree with one of the two."""
    with_oracle = (values == oracle) | (values.isnan() & oracle.isnan())
    with_eager = (values == eager) | (values.isnan() & eager.isnan())
    near = oracle.isfinite() & ((values - oracle).abs() <= 1e-3 * oracle.abs().clamp_min(1e-30))
    return with_oracle | with_eager | near


def _count_exact(mine: torch.Tensor, oracle: torch.Tensor, eager: torch.Tensor) -> _Tally:
    tally, start = _Tally(), 0
    for values, expected, own in _slices(mine, oracle, eager):
        wrong = (values != expected) & (values != own)
        count = int(wrong.sum())
        if count and not tally.wrong:
            tally.worst_at = start + int(wrong.int().argmax())
        tally.wrong += count
        tally.special_wrong |= bool(count)
        start += values.numel()
    return tally


def _complaint(
    mine: torch.Tensor, subject: TensorSubject, tolerance: Tolerance, record: TrialError, tally: _Tally
) -> Diagnostic:
    if mine.numel() <= EXPLAINED:
        oracle, eager = subject.oracle.cpu().contiguous(), subject.eager.cpu().contiguous()
        host = Subject(subject.output, subject.about, subject.dtype, array_from(oracle), array_from(eager))
        found = compare(array_from(mine.cpu().contiguous()), host, tolerance).complaint
        if found is not None:
            return found
    index = torch.unravel_index(torch.tensor(tally.worst_at), mine.shape)
    place = f"[{', '.join(str(int(i)) for i in index)}]"
    got, wanted = (t.reshape(-1)[tally.worst_at].double().item() for t in (mine, subject.oracle))
    error = "not a number" if record.error is None else f"{record.error:.3g}"
    size = describe_size(record.error)
    message = (
        f"{subject.output}{place} is {got:.9g}, expected {wanted:.9g} ({subject.about} inputs); error {error}, "
        f"allowed {record.allowed:.3g}; {_pattern(mine, subject, record.allowed)}"
        f"{'; ' if size else ''}{size}"
    )
    return Diagnostic(stage=Stage.CORRECTNESS, rule="wrong_values", message=message)


def _pattern(mine: torch.Tensor, subject: TensorSubject, allowed: float) -> str:
    """The pattern of the errors: where from every element's flag, what from SAMPLE wrong values at most."""
    flat = (mine.reshape(-1), subject.oracle.reshape(-1), subject.eager.reshape(-1))
    smallest = SMALLEST_NORMAL.get(subject.dtype)
    typical = _typical(flat[1], flat[2], smallest) if smallest is not None else 0.0
    flags = torch.empty(mine.numel(), dtype=torch.bool)
    start = 0
    for values, expected, own in _slices(*flat):
        if subject.dtype.is_floating:
            outside, special, _ = _judged(values.double(), expected, own.double(), typical, allowed)
            found = outside | special
        else:
            found = (values != expected) & (values != own)
        flags[start : start + found.numel()] = found.cpu()
        start += found.numel()
    where = flags.nonzero().reshape(-1)
    where = where[:: -(-where.numel() // SAMPLE)].to(mine.device)
    # Brought over before they are widened: a GPU's conversion would lose the bits of a NaN.
    got, wanted = (tensor[where].cpu().double().numpy() for tensor in flat[:2])
    return describe_pattern(flags.reshape(mine.shape).numpy(), got, wanted)
