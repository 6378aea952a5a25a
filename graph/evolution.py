"""Selection: who survives. Pure; ties are broken by candidate id, so the same verdicts give the same survivors."""

from __future__ import annotations

from collections.abc import Sequence

from agents.schemas import Member
from memory.records import Evaluation, Stage

CORRECTNESS_WEIGHT = 0.7
PERFORMANCE_WEIGHT = 0.3
GAIN = 0.01
"""A best time counts as a gain where it is at least this share faster."""
FAILURE_SHARE = 0.2
"""Above this share of failures a generation is followed by a gentler one."""

_STAGES = tuple(Stage)


def fitness(evaluation: Evaluation) -> float:
    """0.7 * correctness + 0.3 * performance, from 0 to 1.

    Correctness is 1 for a pass and otherwise the share of stages survived, at most 0.9; performance is
    the share of the floor reached, so no failing candidate can outrank a passing one.
    """
    if evaluation.timing is None:
        return CORRECTNESS_WEIGHT * 0.9 * _STAGES.index(evaluation.stage) / len(_STAGES)
    fraction = min(evaluation.timing.floor_us / evaluation.timing.median_us, 1.0)
    return CORRECTNESS_WEIGHT + PERFORMANCE_WEIGHT * fraction


def survivors(members: Sequence[Member], size: int) -> list[Member]:
    """The best `size` distinct passing programs, best first."""
    distinct: dict[str, Member] = {}
    for member in sorted(members, key=rank):
        distinct.setdefault(member.candidate.program_hash, member)
    return [m for m in distinct.values() if m.passed][:size]


def rank(member: Member) -> tuple[float, float, str]:
    """Sort key: fittest first, then fastest (fitness cannot tell where the floor is 0), then by id."""
    timing = member.evaluation.timing
    return -fitness(member.evaluation), timing.median_us if timing else float("inf"), member.candidate.id


def gained(before: Sequence[Member], after: Sequence[Member]) -> bool:
    """True where the best time fell by at least GAIN."""
    old, new = _best_us(before), _best_us(after)
    return new is not None and (old is None or new < old * (1 - GAIN))


def too_many_failures(generation: Sequence[Member]) -> bool:
    """True where more than FAILURE_SHARE of the generation failed."""
    failed = sum(not m.passed for m in generation)
    return bool(generation) and failed > FAILURE_SHARE * len(generation)


def _best_us(members: Sequence[Member]) -> float | None:
    times = [m.evaluation.timing.median_us for m in members if m.evaluation.timing is not None]
    return min(times) if times else None
