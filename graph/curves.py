"""A run's course by generation, as numbers to plot. Pure. Not here: how it is drawn (ui.run_charts)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graph.evolution import Fitness
from memory.records import Timing
from memory.store_views import GenerationLine

DRAWN = 400
"""Points of a curve at most; of longer runs every so many generations are drawn, the last one always."""


@dataclass(frozen=True)
class CurvePoint:
    """A generation; fitness as graph.evolution reckons it."""

    generation: int
    best_us: float | None
    best_so_far_us: float | None
    best_fitness: float | None
    """None where nothing was judged."""
    mean_fitness: float | None


@dataclass(frozen=True)
class Level:
    """A time that a curve is compared with, in µs."""

    name: str
    us: float


_BASELINES = {
    "eager": "eager PyTorch",
    "compile": "torch.compile",
    "compile_best": "torch.compile, best mode",
}


def levels(timing: Timing) -> tuple[Level, ...]:
    """The floor and every baseline that was timed; the floor is left out where it is 0."""
    floor = (Level("floor", timing.floor_us),) if timing.floor_us > 0 else ()
    return (*(Level(_BASELINES[b.name], b.median_us) for b in timing.baselines), *floor)


def curve(lines: Sequence[GenerationLine], fitness: Fitness, floor_us: float) -> tuple[CurvePoint, ...]:
    """One point a generation."""
    return tuple(_point(line, fitness, floor_us) for line in lines)


def thinned(lines: Sequence[GenerationLine], limit: int = DRAWN) -> list[GenerationLine]:
    """At most about `limit` of the generations, evenly, with the last one."""
    step = max(1, -(-len(lines) // limit))
    kept = list(lines[::step])
    return kept if not lines or kept[-1] is lines[-1] else [*kept, lines[-1]]


def _point(line: GenerationLine, fitness: Fitness, floor_us: float) -> CurvePoint:
    failed = [(fitness.of_failure(stage), count) for stage, count in line.failed_at.items()]
    best = max((credit for credit, _ in failed), default=None)
    if line.best_us is not None:
        best = fitness.of_time(line.best_us, floor_us)
    # No program is faster than the floor, but for a time's noise; so the mean of shares needs no cap on each.
    passed = fitness.correctness * line.passed + fitness.performance * min(
        floor_us * line.per_us, float(line.passed)
    )
    total = passed + sum(credit * count for credit, count in failed)
    return CurvePoint(
        line.generation, line.best_us, line.best_so_far_us, best, total / line.judged if line.judged else None
    )
