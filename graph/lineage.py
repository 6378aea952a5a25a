"""Where a winner comes from: its ancestors, each with the idea and what it gained. Not here: how it is drawn."""

from __future__ import annotations

from dataclasses import dataclass

from graph.shortfall import timing_of
from graph.summary import find_candidate, policy_hash
from memory.errors import BadInput
from memory.records import Origin, Run
from memory.store import Store


@dataclass(frozen=True)
class LineageStep:
    """One ancestor, or the candidate itself."""

    candidate: str
    parents: tuple[str, ...]
    generation: int
    origin: Origin
    idea: str
    status: str | None
    """The verdict; None where there is none."""
    median_us: float | None
    speedup: float | None
    """Eager's median over its own."""
    gain: float | None
    """Its fastest parent's median over its own, or eager's for the first of a line; None where either has no time."""


def lineage(run: Run, store: Store, candidate_id: str | None = None) -> tuple[LineageStep, ...]:
    """A candidate's ancestors and itself, oldest first; of the winner, or else the fastest, where none is named.

    Raises: BadInput where the run has no candidate that passed.
    """
    chosen = candidate_id or run.best_candidate
    if chosen is None:
        best = store.best_candidate(run.id, policy_hash=policy_hash(run))
        if best is None:
            raise BadInput(f"run {run.id} has no candidate that passed, so there is no winner's lineage")
        chosen = best.candidate.id
    line = [find_candidate(run, ancestor.id, store) for ancestor in store.lineage(chosen)]
    times = {row.candidate.id: timing.median_us for row in line if (timing := timing_of(row))}
    steps: list[LineageStep] = []
    for row in line:
        candidate, timing = row.candidate, timing_of(row)
        before = [times[parent] for parent in candidate.parents if parent in times]
        first = timing.eager_us if timing and not candidate.parents else None
        base = min(before, default=first)
        steps.append(
            LineageStep(
                candidate=candidate.id,
                parents=candidate.parents,
                generation=candidate.generation,
                origin=candidate.origin,
                idea=candidate.idea.replace(f"{run.id}-", ""),
                status=row.evaluation.status.value if row.evaluation else None,
                median_us=timing.median_us if timing else None,
                speedup=timing.speedup if timing else None,
                gain=base / timing.median_us if timing and base else None,
            )
        )
    return tuple(steps)
