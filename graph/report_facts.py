"""What a run's report is made from, read from the store. Not here: how it reads (graph.report)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from graph.evidence import events_on, not_verified, shapes, verified
from graph.lineage import LineageStep, lineage
from graph.results import export_path
from graph.session import find_summary, standing
from graph.settings import Settings
from graph.summary import policy_hash
from memory.events import EvaluatedCandidate, Review, Spend
from memory.records import Problem, Program, Run, RunStatus, Timing
from memory.signature import problem_signature
from memory.store import Store
from memory.store_views import GenerationLine

_WITHOUT = (RunStatus.NOT_IMPROVED, RunStatus.FAILED)


@dataclass(frozen=True)
class ReportFacts:
    """A run, as its report tells of it."""

    run: Run
    status: str
    """As in graph.summary.Summary."""
    why_not: str | None
    """Why it has no winner; None where it has one, and until it ends."""
    evaluations: int
    by_status: dict[str, int]
    export_path: Path | None
    """The exported module, where it still is."""
    problem: Problem
    signature: str
    own_shapes: str
    row: EvaluatedCandidate | None
    """The verified winner, or else the fastest that passed."""
    program: Program | None
    verified: tuple[str, ...]
    not_verified: tuple[str, ...]
    examined: tuple[str, ...]
    """What a closer look at the winner found: sanitizers and counters."""
    steps: tuple[LineageStep, ...]
    generations: tuple[GenerationLine, ...]
    reviews: tuple[Review, ...]
    spend: Spend

    @property
    def timing(self) -> Timing | None:
        """Of the candidate that is told of."""
        return self.row.evaluation.timing if self.row and self.row.evaluation else None

    @property
    def won(self) -> bool:
        """True where the run has a verified winner."""
        return self.row is not None and self.row.candidate.id == self.run.best_candidate


def gather(run: Run, store: Store, settings: Settings) -> ReportFacts:
    """Everything that is known of a run now. Raises StoreError, and BadInput for a damaged record."""
    judged_under = policy_hash(run)
    row = (
        store.evaluated_one(run.id, run.best_candidate, policy_hash=judged_under)
        if run.best_candidate is not None
        else store.best_candidate(run.id, policy_hash=judged_under)
    )
    problem = store.problem(run.problem_hash)
    generations = store.by_generation(run.id, policy_hash=judged_under)
    counts, path = store.counts(run.id, policy_hash=judged_under), export_path(run)
    return ReportFacts(
        run=run,
        status=standing(run, store, settings),
        why_not=find_summary(run, store, settings).why_not if run.status in _WITHOUT else None,
        evaluations=counts.evaluated,
        by_status={kind.value: number for kind, number in sorted(counts.by_status.items())},
        export_path=path if path.exists() else None,
        problem=problem,
        signature=problem_signature(problem),
        own_shapes=shapes(problem),
        row=row,
        program=store.program(row.candidate.program_hash) if row else None,
        verified=verified(row, run, store) if row else (),
        not_verified=not_verified(row, run, store) if row else (),
        examined=_examined(row, run, store) if row else (),
        steps=lineage(run, store, row.candidate.id) if row else (),
        generations=tuple(generations),
        reviews=tuple(store.reviews_of_run(run.id)),
        spend=store.spend(run.id),
    )


def _examined(row: EvaluatedCandidate, run: Run, store: Store) -> tuple[str, ...]:
    """What was found on a closer look; not what the profiler said on the way, which begins with the bottleneck."""
    profile = row.evaluation.profile if row.evaluation else None
    said = dict.fromkeys(event.decision for event in events_on(row.candidate.id, run, store, ("profiler",)))
    return tuple(text for text in said if profile is None or not text.startswith(f"{profile.bottleneck}: "))
