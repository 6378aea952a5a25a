"""Follows a run that another process works on, by asking the store.

Not here: telling how it ended (graph.chat_answers).
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from agents.schemas import short_id
from graph.chat_parts import ChatPart, ProgressLine
from graph.runner import Runner
from graph.summary import policy_hash
from graph.tables import idea_text, us_text
from memory.events import EvaluatedCandidate
from memory.records import Run
from memory.store import Store
from memory.store_views import Seen

_TOLD_ROLES = frozenset({"planner", "critic"})


def watch_run(run: Run, store: Store, runner: Runner, *, poll_s: float = 0.5) -> Iterator[ChatPart]:
    """New verdicts and decisions as they come, until nobody works on the run any more."""
    told: set[str] = set()
    seen, judged_under = Seen(), policy_hash(run)
    last: str | None = None
    at_work = True
    while at_work:
        # In this order: what the process did before it ended is told.
        at_work = runner.worker(run.id) is not None
        for event in store.events(run.id, after=last):
            last = event.id
            if event.role in _TOLD_ROLES:
                about = f"{short_id(event.candidate_id)}: " if event.candidate_id else ""
                yield ProgressLine(text=f"{event.role}: {about}{event.decision.replace(f'{run.id}-', '')}")
        rows, seen = store.judged_since(run.id, seen, policy_hash=judged_under)
        for row in rows:
            if row.candidate.id not in told:
                told.add(row.candidate.id)
                yield ProgressLine(text=_verdict(row))
        if at_work:
            time.sleep(poll_s)


def _verdict(row: EvaluatedCandidate) -> str:
    assert row.evaluation is not None
    head, timing = short_id(row.candidate.id), row.evaluation.timing
    if timing is None:
        reason = row.evaluation.diagnostics[0].message.partition("\n")[0]
        return f"{head} {row.evaluation.status.value.replace('_', ' ')}: {reason}"
    return f"{head} {us_text(timing.median_us)}, {timing.speedup:.2f}× ({timing.source}): {idea_text(row.candidate)}"
