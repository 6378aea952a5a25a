"""Statistics over a benchmark's entries. Pure.

Invariant: a gain counts only where the verifier called the problem improved, so that a program which is merely faster
in its median, or which failed its soak, is a draw at best; what failed counts in every denominator.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from graph.bench_records import BenchEntry, BenchStatus, TimeUs

Baseline = Literal["eager", "compile", "compile_best"]


@dataclass(frozen=True)
class Counts:
    """How the problems ended."""

    improved: int
    not_improved: int
    failed: int
    running: int

    @property
    def total(self) -> int:
        """All problems of the benchmark."""
        return self.improved + self.not_improved + self.failed + self.running


@dataclass(frozen=True)
class Averages:
    """Geometric mean and median of some speedups."""

    problems: int
    geometric_mean: float
    median: float


def count(entries: Sequence[BenchEntry]) -> Counts:
    """Problems by outcome."""
    found = [entry.status for entry in entries]
    return Counts(
        improved=found.count(BenchStatus.IMPROVED),
        not_improved=found.count(BenchStatus.NOT_IMPROVED),
        failed=found.count(BenchStatus.FAILED),
        running=found.count(BenchStatus.RUNNING),
    )


def own_speedup(entry: BenchEntry, against: Baseline = "eager") -> float | None:
    """Baseline over our best program; at most 1 where the problem was not improved.

    None where the problem failed, no program passed, or the baseline was not timed.
    """
    baseline: TimeUs | None = getattr(entry, against)
    if baseline is None or entry.ours is None or entry.status not in _ENDED:
        return None
    ratio = baseline.median_us / entry.ours.median_us
    return ratio if entry.status is BenchStatus.IMPROVED else min(ratio, 1.0)


def delivered_speedup(entry: BenchEntry) -> float | None:
    """What a user gets against eager: PyTorch itself where nothing is better. None where the problem failed."""
    if entry.status not in _ENDED:
        return None
    return (own_speedup(entry) or 1.0) if entry.status is BenchStatus.IMPROVED else 1.0


def averages(speedups: Sequence[float | None]) -> Averages | None:
    """Over the speedups that exist; None where none does."""
    known = [value for value in speedups if value is not None]
    if not known:
        return None
    return Averages(len(known), geometric_mean(known), statistics.median(known))


def geometric_mean(values: Sequence[float]) -> float:
    """exp of the mean logarithm of positive values, kept between the least and the largest of them."""
    mean = math.exp(math.fsum(math.log(value) for value in values) / len(values))
    return min(max(mean, min(values)), max(values))


def fast_p(speedups: Sequence[float | None], threshold: float) -> float:
    """Share of all problems, failed ones included, whose speedup is above `threshold`; 0 for no problems."""
    if not speedups:
        return 0.0
    return sum(value is not None and value > threshold for value in speedups) / len(speedups)


def losses(entries: Sequence[BenchEntry], against: Baseline = "eager") -> list[tuple[BenchEntry, float]]:
    """Problems on which our best program is slower than the baseline, the worst first."""
    found = [(entry, own_speedup(entry, against)) for entry in entries]
    slower = [(entry, value) for entry, value in found if value is not None and value < 1]
    return sorted(slower, key=lambda pair: pair[1])


_ENDED = frozenset((BenchStatus.IMPROVED, BenchStatus.NOT_IMPROVED))
