"""A run's outcome as people and programs read it. Not here: how it is drawn (graph.tables)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from graph.settings import settings_from_run
from graph.shortfall import REASONS, timing_of, why_not
from memory.errors import BadInput
from memory.events import AgentEvent, EvaluatedCandidate, Spend
from memory.records import Origin, Run, RunStatus
from memory.store import Store

INTERRUPTED = "interrupted"
"""Status of a run that no process works on and that has not ended."""
LEFT = (INTERRUPTED, RunStatus.PAUSED.value)
"""Statuses of a run that `resume` goes on with and nobody has to be asked about."""
IN_REVIEW = "in_review"
"""Status of a run whose winner waits for a person's word."""


@dataclass(frozen=True)
class Summary:
    """A run's outcome as `optimize --json` prints it; times in µs."""

    run: str
    status: str
    """running, in_review, interrupted, paused, improved, not_improved or failed."""
    device: str
    measured: bool
    """False where the times are modelled."""
    baseline_us: float | None
    best_us: float | None
    floor_us: float | None
    speedup: float
    """1 where nothing beats PyTorch: the result is PyTorch itself."""
    evaluations: int
    by_status: dict[str, int]
    why_not: str | None
    """Why the run has no winner, in one line; None where it improved, and until it ends."""
    program_path: str | None
    export_path: str | None
    spend: Spend | None
    """What the language models have used; None where none was asked."""


@dataclass(frozen=True)
class CandidateLine:
    """One candidate of a run."""

    id: str
    origin: Origin
    idea: str
    generation: int
    parents: tuple[str, ...]
    status: str | None
    """The verdict; None until there is one."""
    speedup: float | None
    """Eager's median over its own; None unless it passed."""
    median_us: float | None
    program_hash: str


@dataclass(frozen=True)
class RunDetail(Summary):
    """What `show RUN --json` prints: the outcome, and how it came about."""

    candidates: tuple[CandidateLine, ...]
    """In the order in which they were written."""
    decisions: tuple[AgentEvent, ...]
    """Of the agents, in order."""


def policy_hash(run: Run) -> str:
    """Of the policy that the run's candidates are judged under."""
    return settings_from_run(run.settings).policy.content_hash()


def run_candidates(run: Run, store: Store) -> list[EvaluatedCandidate]:
    """A run's candidates in order, judged under the run's own policy."""
    return store.evaluated(run.id, policy_hash=policy_hash(run))


def find_candidate(run: Run, name: str, store: Store) -> EvaluatedCandidate:
    """A candidate of a run by its whole id or the short one that tables show, such as `002-003`.

    Raises: BadInput where the run has none of that name.
    """
    for candidate_id in (name, f"{run.id}-{name}"):
        found = store.evaluated_one(run.id, candidate_id, policy_hash=policy_hash(run))
        if found is not None:
            return found
    count = store.counts(run.id).candidates
    shown = f"`warpsmith show {run.id}` lists its {count} candidates" if count else "it has none yet"
    raise BadInput(f"run {run.id} has no candidate {name!r}; {shown}")


def summarise_run(
    store: Store, run_id: str, *, status: str, program_path: Path | None, export_path: Path | None
) -> Summary:
    """What the store knows of a run. The best candidate is the verified winner, or the fastest that passed."""
    run = store.run(run_id)
    judged_under = policy_hash(run)
    best = store.best_candidate(run.id, policy_hash=judged_under)
    winner = (
        store.evaluated_one(run.id, run.best_candidate, policy_hash=judged_under)
        if run.best_candidate is not None
        else None
    )
    chosen = winner if winner is not None and timing_of(winner) is not None else best
    timing = timing_of(chosen) if chosen is not None else None
    improved = run.status is RunStatus.IMPROVED
    spend = store.spend(run.id)
    counts = store.counts(run.id, policy_hash=judged_under)
    return Summary(
        run=run.id,
        status=status,
        device=run.device,
        measured=timing is not None and timing.source == "measured",
        baseline_us=timing.eager_us if timing else None,
        best_us=timing.median_us if timing else None,
        floor_us=timing.floor_us if timing else None,
        speedup=timing.speedup if timing and improved else 1.0,
        evaluations=counts.evaluated,
        by_status={kind.value: count for kind, count in sorted(counts.by_status.items())},
        why_not=_why_not(run, best, store),
        program_path=str(program_path) if program_path else None,
        export_path=str(export_path) if export_path else None,
        spend=spend if spend.calls else None,
    )


def _why_not(run: Run, best: EvaluatedCandidate | None, store: Store) -> str | None:
    if run.status not in (RunStatus.NOT_IMPROVED, RunStatus.FAILED):
        return None
    # Of what passed only the best says anything; where nothing passed every verdict is counted.
    rows = [best] if best is not None else run_candidates(run, store)
    return why_not(run.status, rows, store.events_saying(run.id, *REASONS), store.reviews)


def detailed(summary: Summary, run: Run, store: Store) -> RunDetail:
    """The outcome with the run's candidates and decisions."""
    outcome = {field.name: getattr(summary, field.name) for field in fields(Summary)}
    candidates = tuple(_line(row) for row in run_candidates(run, store))
    return RunDetail(**outcome, candidates=candidates, decisions=tuple(store.events(run.id)))


def _line(row: EvaluatedCandidate) -> CandidateLine:
    candidate, timing = row.candidate, timing_of(row)
    return CandidateLine(
        id=candidate.id,
        origin=candidate.origin,
        idea=candidate.idea,
        generation=candidate.generation,
        parents=candidate.parents,
        status=row.evaluation.status.value if row.evaluation else None,
        speedup=timing.speedup if timing else None,
        median_us=timing.median_us if timing else None,
        program_hash=candidate.program_hash,
    )
