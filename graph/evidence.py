"""What a candidate has been put through, and what nobody has tried: phrases for the chat, the report and reviewers."""

from __future__ import annotations

from graph.shortfall import REFUTED, timing_of
from memory.events import AgentEvent, EvaluatedCandidate
from memory.records import Problem, Run, Stage
from memory.store import Store

_LAST_EVENTS = 400
"""A winner's soak is among the last things that happen in a run."""


def verified(row: EvaluatedCandidate, run: Run, store: Store) -> tuple[str, ...]:
    """What a candidate passed, each a phrase that needs no other."""
    if row.evaluation is None or timing_of(row) is None:
        return ()
    errors = row.evaluation.errors
    kinds = dict.fromkeys(e.distribution for e in errors)
    worst = max((e.error / e.allowed for e in errors if e.error is not None and e.allowed > 0), default=None)
    parts = [f"trials against a float64 oracle with {len(kinds)} kinds of inputs ({', '.join(kinds)})"]
    if worst is not None:
        parts.append(f"its largest error was {worst:.0%} of what is allowed")
    if Stage.SANITIZE.value in row.evaluation.seconds:
        parts.append(f"a run under the sanitizer of {run.device} that found nothing")
    said = [event.decision for event in events_on(row.candidate.id, run, store, ("critic",))]
    parts.extend(text for text in said if text.startswith(("passed ", "archived", REFUTED)))
    return tuple(parts)


def not_verified(row: EvaluatedCandidate, run: Run, store: Store) -> tuple[str, ...]:
    """What has not been tried of a candidate that passed."""
    timing, parts = timing_of(row), []
    if timing is not None and timing.source == "modelled":
        parts.append(
            f"its time on a real GPU: {run.device} models it, which ranks candidates but measures nothing"
        )
    if (twin := store.twin(run.problem_hash)) is not None:
        own = shapes(store.problem(run.problem_hash))
        parts.append(f"most trials ran at reduced shapes ({shapes(twin)}), not at {own}")
    said = [event.decision for event in events_on(row.candidate.id, run, store, ("critic",))]
    if not any(
        text.startswith("passed ") for text in said
    ):  # a winner that waits for review has passed them too
        parts.append("the further random trials that only a winner goes through")
    parts.append("other shapes and dtypes, and gradients: the export runs the original module there")
    return tuple(parts)


def events_on(candidate_id: str, run: Run, store: Store, roles: tuple[str, ...]) -> list[AgentEvent]:
    """What these roles last said of a candidate, in order."""
    last = store.last_events(run.id, limit=_LAST_EVENTS, roles=roles)
    return [event for event in last if event.candidate_id == candidate_id]


def shapes(problem: Problem) -> str:
    """The inputs' shapes, such as `x [512, 1024]`."""
    return ", ".join(f"{name} {[*problem.graph.values[name].shape]}" for name in problem.graph.inputs)
