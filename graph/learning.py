"""What a run's past says to its models: failures to avoid, and which model's which move paid. Pure.

Not here: the critic's lessons, which are in the state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from agents.schemas import REPAIR, ArmOutcome, Failure, Move
from graph.shortfall import timing_of
from memory.events import AgentEvent, EvaluatedCandidate

FAILURES_SHOWN = 12
_MADE_BY = {"coder", "compiler"}
"""Roles whose calls make a candidate; the planner's and the critic's are shared by a generation."""


def failures(rows: Sequence[EvaluatedCandidate], generation: int) -> tuple[Failure, ...]:
    """The newest failures of generations before this one, oldest first."""
    failed = [
        Failure(
            row.candidate.id, row.candidate.idea, row.evaluation.status, row.evaluation.diagnostics[0].message
        )
        for row in rows
        if row.candidate.generation < generation and row.evaluation and timing_of(row) is None
    ]
    return tuple(failed[-FAILURES_SHOWN:])


def arm_outcomes(
    rows: Sequence[EvaluatedCandidate], events: Sequence[AgentEvent], generation: int
) -> tuple[ArmOutcome, ...]:
    """One for every proposal of an earlier generation that a model worked on, oldest first.

    Its gain is that of the best of its program and the mended ones, over the best time before its generation; its
    cost is what the calls for it cost, in USD or, where a price is unknown, in millions of tokens.
    """
    outcomes: list[ArmOutcome] = []
    for row in rows:
        first = row.candidate
        if first.origin.move is None or first.origin.move == REPAIR or first.generation >= generation:
            continue
        before = [
            t.median_us for r in rows if r.candidate.generation < first.generation and (t := timing_of(r))
        ]
        line = [r for r in rows if r.candidate.id == first.id or r.candidate.id.startswith(f"{first.id}-r")]
        times = [timing.median_us for r in line if (timing := timing_of(r))]
        gain = max(0.0, math.log(min(before) / min(times))) if before and times else 0.0
        outcomes.append(
            ArmOutcome(first.origin.detail, Move(first.origin.move), gain, _cost(first.id, events))
        )
    return tuple(outcomes)


def _cost(candidate_id: str, events: Sequence[AgentEvent]) -> float:
    calls = [
        e for e in events if e.candidate_id == candidate_id and e.role in _MADE_BY and e.agent == "model"
    ]
    if any(e.cost_usd is None for e in calls if e.tokens_in is not None):
        return sum((e.tokens_in or 0) + (e.tokens_out or 0) for e in calls) / 1e6
    return sum(e.cost_usd or 0.0 for e in calls)
