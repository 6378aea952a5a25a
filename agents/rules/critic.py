"""The critic by rules: what a generation taught, what looks too good, and when to stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agents.schemas import Critique, Member, Scene
from memory.records import Status

NEAR_FLOOR = 0.95
PATIENCE = 2


class RulesCritic:
    """Stops near the floor or after `patience` generations without a gain.

    floor_share: of the floor, 0 to 1, that is near enough; None to go on however near.
    """

    def __init__(self, patience: int = PATIENCE, floor_share: float | None = NEAR_FLOOR) -> None:
        self._patience = patience
        self._floor_share = floor_share

    def critique(
        self,
        generation: Sequence[Member],
        population: Sequence[Member],
        stagnation: int,
        scene: Scene,  # noqa: ARG002
    ) -> Critique:
        """See agents.ports.Critic."""
        lessons = [*_failures(generation), *_tunable_lessons(generation)]
        suspicious = tuple(m.candidate.id for m in generation if m.evaluation.status is Status.SUSPICIOUS)
        best = population[0] if population else None
        if self._floor_share is not None and best is not None and best.evaluation.profile is not None:
            fraction = best.evaluation.profile.floor_fraction
            if fraction >= self._floor_share:
                reason = f"the best candidate runs at {fraction:.0%} of the floor"
                return Critique(lessons=tuple(lessons), suspicious=suspicious, stop=True, reason=reason)
        if stagnation >= self._patience:
            reason = f"{stagnation} generations in a row brought no gain"
            return Critique(lessons=tuple(lessons), suspicious=suspicious, stop=True, reason=reason)
        return Critique(lessons=tuple(lessons), suspicious=suspicious)


def _failures(generation: Sequence[Member]) -> list[str]:
    counts = Counter(m.evaluation.status for m in generation if not m.passed)
    lessons: list[str] = []
    for status, count in sorted(counts.items()):
        example = next(m for m in generation if m.evaluation.status is status)
        why = example.evaluation.diagnostics[0].message
        lessons.append(f"{count} of {len(generation)} ended as {status.value}, for example: {why}")
    return lessons


def _tunable_lessons(generation: Sequence[Member]) -> list[str]:
    """The value of a tunable that the fastest third shares while the slowest third avoids it."""
    timed = sorted((m for m in generation if m.evaluation.timing is not None), key=_time)
    third = len(timed) // 3
    if third < 2:
        return []
    fast, slow = timed[:third], timed[-third:]
    lessons: list[str] = []
    for name in sorted(set(fast[0].program.tunable_values())):
        winners = {m.program.tunable_values().get(name) for m in fast}
        losers = {m.program.tunable_values().get(name) for m in slow}
        if len(winners) == 1 and not winners & losers:
            lessons.append(
                f"{name}={winners.pop()} is shared by the fastest candidates and by none of the slowest"
            )
    return lessons


def _time(member: Member) -> float:
    timing = member.evaluation.timing
    return timing.median_us if timing is not None else float("inf")
