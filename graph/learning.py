"""What a run's past says to its models: failures to avoid, and which model's which move paid. Pure.

Not here: the critic's lessons, which are in the state.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from agents.schemas import REPAIR, ArmOutcome, Failure, Move
from graph.shortfall import timing_of
from memory.events import AgentEvent, EvaluatedCandidate
from memory.records import Candidate

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
    """One for every proposal of an earlier generation that a model answered, or was charged for, oldest first.

    Its gain is that of the best of its program and the mended ones, over the best time before its generation, and 0
    where no program came of it. Its cost is what the calls for it cost: in USD or, where the price of any is unknown,
    in millions of tokens.
    """
    calls = [
        e for e in events if e.role in _MADE_BY and e.generation < generation and e.tokens_in is not None
    ]
    by_price = all(call.cost_usd is not None for call in calls)
    costs: dict[str, float] = defaultdict(float)
    for call in calls:
        tokens = (call.tokens_in or 0) + (call.tokens_out or 0)
        costs[call.candidate_id or ""] += (call.cost_usd or 0.0) if by_price else tokens / 1e6
    outcomes: dict[str, ArmOutcome] = {}
    for call in calls:
        if call.move is not None and call.model is not None and call.candidate_id is not None:
            barren = ArmOutcome(call.model, Move(call.move), 0.0, costs[call.candidate_id])
            outcomes.setdefault(call.candidate_id, barren)
    for row in rows:
        first = row.candidate
        if first.origin.move is None or first.origin.move == REPAIR or first.generation >= generation:
            continue
        move, gain = Move(first.origin.move), _gain(first, rows)
        outcomes[first.id] = ArmOutcome(first.origin.detail, move, gain, costs[first.id])
    return tuple(outcomes[candidate_id] for candidate_id in sorted(outcomes))


def _gain(first: Candidate, rows: Sequence[EvaluatedCandidate]) -> float:
    """As log of the ratio of times."""
    before = [t.median_us for r in rows if r.candidate.generation < first.generation and (t := timing_of(r))]
    line = [r for r in rows if r.candidate.id == first.id or r.candidate.id.startswith(f"{first.id}-r")]
    times = [timing.median_us for r in line if (timing := timing_of(r))]
    return max(0.0, math.log(min(before) / min(times))) if before and times else 0.0
