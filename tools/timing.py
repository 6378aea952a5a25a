"""Timing: contestants run in turn on one device, and intervals that say how sure their medians are.

Here: the interleaved loop over any timer, and the statistics (pure, seeded). Not here: events and caches of a real
device (tools.devices.cuda_race).
Invariant: contestants see the same input sets in the same rounds; who goes first alternates; every run starts cold.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]
Contestant = Callable[[int], object]
"""Runs once on the input set of that index."""

RESAMPLES = 1000
CONFIDENCE = 0.99
"""At 0.95 about 2 of 100 equal contestants have a ratio bound above 1, so one in three times 20 repeats would hold a
false win; at 0.99 none of 400 had (synthetic noise)."""


@dataclass(frozen=True)
class Interval:
    """A median or a ratio of medians with its bootstrap percentile interval; low <= middle <= high."""

    middle: float
    low: float
    high: float


@dataclass(frozen=True)
class TimingBudget:
    """How long one race may take: rounds follow from `seconds`, within the bounds."""

    seconds: float = 0.025
    min_rounds: int = 10
    max_rounds: int = 200


class Timer(Protocol):
    """Measures single runs; readings may be pending until `settle`."""

    def cool(self) -> None:
        """Put the caches into the state that every run starts from."""
        ...

    def start(self, work: Callable[[], object]) -> Callable[[], float]:
        """Run work once; the returned function gives its time in µs, after `settle`."""
        ...

    def settle(self) -> None:
        """Wait until every run has ended."""
        ...


def interleave(
    timer: Timer,
    contestants: Mapping[str, Contestant],
    *,
    sets: int,
    budget: TimingBudget,
    before_run: Callable[[str, int], object] | None = None,
) -> dict[str, Samples]:
    """Times in µs of every contestant, one a round, by name.

    sets: input sets to rotate over. before_run: called with the contestant's name and
    the set before every timed run, off the clock.
    """
    for contestant in contestants.values():
        for index in range(sets):
            contestant(index)
    timer.settle()
    rounds = _rounds(timer, contestants, budget)
    pending: dict[str, list[Callable[[], float]]] = {name: [] for name in contestants}
    order = list(contestants.items())
    for number in range(rounds):
        index = number % sets
        for name, contestant in order if (number // sets) % 2 == 0 else reversed(order):
            if before_run is not None:
                before_run(name, index)
            timer.cool()
            pending[name].append(timer.start(lambda run=contestant, at=index: run(at)))  # type: ignore[misc]
    timer.settle()
    return {name: np.array([read() for read in readings]) for name, readings in pending.items()}


def _rounds(timer: Timer, contestants: Mapping[str, Contestant], budget: TimingBudget) -> int:
    """Rounds that fit the budget, from the wall time of one, cooling included."""
    started = time.perf_counter()
    for contestant in contestants.values():
        timer.cool()
        contestant(0)
    timer.settle()
    taken = max(time.perf_counter() - started, 1e-6)
    return max(budget.min_rounds, min(budget.max_rounds, int(budget.seconds / taken)))


def median_interval(samples: Samples, *, seed: int = 0, confidence: float = CONFIDENCE) -> Interval:
    """The median of 1-d samples with its bootstrap percentile interval. Raises ValueError without samples."""
    if samples.size == 0:
        raise ValueError("no samples to take a median of")
    drawn = _draws(samples.size, seed)
    return _interval(float(np.median(samples)), np.median(samples[drawn], axis=1), confidence)


def ratio_interval(
    baseline: Samples, mine: Samples, *, seed: int = 0, confidence: float = CONFIDENCE
) -> Interval:
    """median(baseline) / median(mine), the speedup, with its interval; rounds are resampled as pairs.

    Raises ValueError where the two differ in length or are empty.
    """
    if baseline.shape != mine.shape or mine.size == 0:
        raise ValueError(f"{baseline.size} baseline samples against {mine.size}: a ratio needs pairs")
    drawn = _draws(mine.size, seed)
    ratios = np.median(baseline[drawn], axis=1) / np.median(mine[drawn], axis=1)
    return _interval(float(np.median(baseline) / np.median(mine)), ratios, confidence)


def _draws(count: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, count, size=(RESAMPLES, count))


def _interval(middle: float, resampled: Samples, confidence: float) -> Interval:
    tail = 50.0 * (1.0 - confidence)
    low, high = np.percentile(resampled, [tail, 100.0 - tail])
    return Interval(middle, min(float(low), middle), max(float(high), middle))
