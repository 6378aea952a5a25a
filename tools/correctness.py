"""Does an output agree with the float64 oracle, at least as well as eager PyTorch does? Pure arithmetic on arrays.

The measure is the largest elementwise error relative to max(|oracle|, scale): relative where values matter, and not
blown up where a sum cancels to nearly zero. The scale is the oracle's rms, but at most four times the median of its
nonzero magnitudes, so that one huge value cannot hide errors in all the others. Magnitudes that the output's dtype
cannot hold count as zero: a softmax of large inputs is 1e-300 almost everywhere, and zero is right there. A candidate
passes where its error is at most max(tolerance, factor * eager's error), so nothing wins by being sloppier than
PyTorch.

Covers: wrong, missing, unwritten, NaN and infinite elements, wrong integers. Does not cover: elements for which
eager itself leaves the finite numbers although the oracle does not (overflow in the problem's own precision);
there the candidate may overflow too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory.records import Diagnostic, DType, Stage, TrialError
from tools.arrays import Array, as_float64
from tools.error_patterns import describe_pattern, describe_size

MEDIAN_FACTOR = 4.0
"""A normal distribution's rms is 1.5 of its medians, so for such outputs the scale is the rms."""

SMALLEST_NORMAL = {DType.F64: 2.3e-308, DType.F32: 1.2e-38, DType.BF16: 1.2e-38, DType.F16: 6.2e-5}
"""Below about this a dtype has subnormal numbers or none; IEEE 754, rounded up."""


@dataclass(frozen=True)
class Tolerance:
    """The rule by which errors are judged."""

    relative: float = 1e-6
    """Errors up to this always pass."""
    factor: float = 2.0
    """Errors up to this multiple of eager PyTorch's own pass."""


@dataclass(frozen=True)
class Comparison:
    """One output against the oracle: the error record, and a diagnostic where it fails."""

    record: TrialError
    complaint: Diagnostic | None


@dataclass(frozen=True)
class Subject:
    """What is compared: an output of one trial, with the oracle's values and eager's."""

    output: str
    distribution: str
    dtype: DType
    oracle: Array
    """float64, or the output's own integer type."""
    eager: Array
    """In the output's own dtype."""


# NaN and infinity are values to be judged here, not accidents to warn of.
@np.errstate(invalid="ignore", over="ignore")
def compare(mine: Array, subject: Subject, tolerance: Tolerance) -> Comparison:
    """Judge `mine`, an array of the subject's shape and dtype (bf16 as bit patterns)."""
    if not subject.dtype.is_floating:
        return _compare_exact(mine, subject)
    values = as_float64(mine, subject.dtype)
    eager = as_float64(subject.eager, subject.dtype)
    oracle = subject.oracle.astype(np.float64, copy=False)
    judged = np.isfinite(oracle) & np.isfinite(eager)
    scale = _scale(oracle, judged, SMALLEST_NORMAL[subject.dtype])
    eager_error = _largest(np.abs(eager - oracle), scale, judged)
    allowed = max(tolerance.relative, tolerance.factor * eager_error)
    errors = np.where(judged, np.abs(values - oracle) / scale, 0.0)
    # NaN compares false with everything, so ask for "not within" rather than "beyond".
    wrong = judged & ~(errors <= allowed)
    wrong |= ~judged & ~_same_special(values, oracle, eager)
    worst = float(errors.max()) if errors.size else 0.0
    record = TrialError(
        distribution=subject.distribution,
        output=subject.output,
        error=worst if np.isfinite(worst) and not (wrong & ~judged).any() else None,
        eager_error=eager_error,
        allowed=allowed,
    )
    complaint = _complaint(values, oracle, wrong, record) if wrong.any() else None
    return Comparison(record, complaint)


def _scale(oracle: NDArray[np.float64], judged: NDArray[np.bool_], smallest: float) -> NDArray[np.float64]:
    """max(|oracle|, scale) per element, and 1 where the whole output is zero."""
    sizes = np.abs(oracle[judged])
    sizes = sizes[sizes >= smallest] if (sizes >= smallest).any() else sizes[sizes > 0]
    typical = 0.0
    if sizes.size:
        rms = float(np.sqrt(np.mean(np.square(sizes)) * sizes.size / judged.sum()))
        typical = min(rms, MEDIAN_FACTOR * float(np.median(sizes)))
    scale = np.maximum(np.abs(oracle), typical)
    return np.where(np.isfinite(scale) & (scale > 0), scale, 1.0)


def _largest(errors: NDArray[np.float64], scale: NDArray[np.float64], judged: NDArray[np.bool_]) -> float:
    return float((errors[judged] / scale[judged]).max()) if judged.any() else 0.0


def _same_special(
    values: NDArray[np.float64], oracle: NDArray[np.float64], eager: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Where the oracle or eager is not finite: the candidate must agree with one of the two."""
    agrees_with_oracle = (values == oracle) | (np.isnan(values) & np.isnan(oracle))
    agrees_with_eager = (values == eager) | (np.isnan(values) & np.isnan(eager))
    finite_oracle = np.isfinite(oracle)
    near = finite_oracle & (np.abs(values - oracle) <= 1e-3 * np.maximum(np.abs(oracle), 1e-30))
    return np.asarray(agrees_with_oracle | agrees_with_eager | near)


def _compare_exact(mine: Array, subject: Subject) -> Comparison:
    """Integers and booleans: equal to the oracle's or, where rounding decided (argmax, comparisons), to eager's."""
    wrong = (mine != subject.oracle) & (mine != subject.eager)
    bad = bool(wrong.any())
    record = TrialError(
        distribution=subject.distribution,
        output=subject.output,
        error=None if bad else 0.0,
        eager_error=0.0,
        allowed=0.0,
    )
    complaint = (
        _complaint(mine.astype(np.float64), subject.oracle.astype(np.float64), wrong, record) if bad else None
    )
    return Comparison(record, complaint)


# --- explaining a mismatch ------------------------------------------------------------------------------------


def _complaint(
    values: NDArray[np.float64], oracle: NDArray[np.float64], wrong: NDArray[np.bool_], record: TrialError
) -> Diagnostic:
    """The worst element, its index, expected and got, and the pattern of the errors."""
    distance = np.where(wrong, np.abs(values - oracle), -1.0)
    distance = np.where(np.isnan(distance), np.inf, distance)
    flat = int(distance.argmax())
    index = tuple(int(i) for i in np.unravel_index(flat, values.shape))
    place = f"[{', '.join(map(str, index))}]"
    error = "not a number" if record.error is None else f"{record.error:.3g}"
    size = describe_size(record.error)
    message = (
        f"{record.output}{place} is {values.flat[flat]:.9g}, expected {oracle.flat[flat]:.9g} "
        f"({record.distribution} inputs); error {error}, allowed {record.allowed:.3g}; "
        f"{describe_pattern(wrong, values[wrong], oracle[wrong])}"
        f"{'; ' if size else ''}{size}"
    )
    return Diagnostic(stage=Stage.CORRECTNESS, rule="wrong_values", message=message)
