"""How a program behaves, from what was measured of it and never from its source. Pure.

Three numbers from 0 to 1 place a passed candidate in a grid whose every cell remembers its fittest (MAP-Elites): a
search that keeps unlike programs alive finds its way out of a local optimum.
Source: Mouret and Clune, "Illuminating search spaces by mapping elites", arXiv 1504.04909.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.schemas import Member
from memory.records import Evaluation, Problem
from tools.gpus import GpuSpec

BINS = 4
"""Along each axis: 64 cells, of which a problem's programs usually fill a dozen."""


@dataclass(frozen=True)
class Behaviour:
    """What a passed candidate does with the machine; each from 0 to 1.

    On the simulator bytes and sectors were observed. On a GPU the time was measured, and bytes come from counters where
    there are some, else from the shapes of what each step reads and writes.
    """

    memory_intensity: float
    """DRAM bytes over its time, of the bandwidth that a copy reaches."""
    parallelism: float
    """Occupancy of its own kernels, achieved where it was counted, weighed by their time; 0 for library calls alone."""
    reuse: float
    """The bytes that the problem must move over those that were moved: 1 where every value comes from DRAM once."""


@dataclass(frozen=True, order=True)
class Cell:
    """A place in the grid; each from 0 to BINS - 1."""

    memory_intensity: int
    parallelism: int
    reuse: int


CellOf = Callable[[Member], Cell | None]
"""None for a candidate that did not pass."""


def behaviour(evaluation: Evaluation, problem: Problem, gpu: GpuSpec) -> Behaviour | None:
    """None where nothing was measured: the candidate failed."""
    timing, profile = evaluation.timing, evaluation.profile
    if timing is None or profile is None:
        return None
    moved = sum(step.dram_bytes for step in profile.steps)
    # gpu.dram_gbps is 10^9 bytes a second, so 10^3 bytes a µs.
    intensity = moved / (timing.median_us * gpu.dram_gbps * 1e3)
    known = [
        (step.us, step.occupancy if step.achieved_occupancy is None else step.achieved_occupancy)
        for step in profile.steps
        if step.occupancy is not None
    ]
    time = sum(us for us, _ in known)
    occupied = sum(us * (share or 0.0) for us, share in known)
    return Behaviour(
        memory_intensity=min(intensity, 1.0),
        parallelism=min(occupied / time, 1.0) if time else 0.0,
        reuse=min(problem.work.min_bytes / moved, 1.0) if moved else 1.0,
    )


def cells(problem: Problem, gpu: GpuSpec) -> CellOf:
    """Where in the grid a member lies."""

    def cell(member: Member) -> Cell | None:
        found = behaviour(member.evaluation, problem, gpu)
        if found is None:
            return None
        return Cell(_bin(found.memory_intensity), _bin(found.parallelism), _bin(found.reuse))

    return cell


def _bin(value: float) -> int:
    return min(int(value * BINS), BINS - 1)


def elites(members: Sequence[Member], cell: CellOf) -> list[Member]:
    """The first of each cell in the order given, so that of the fittest first where they are ordered that way."""
    found: dict[Cell, Member] = {}
    for member in members:
        place = cell(member)
        if place is not None:
            found.setdefault(place, member)
    return list(found.values())
