"""How far a run is, read in a few short queries, however many candidates it has: what a page may ask each second.

Not here: a run's whole outcome (graph.summary).
"""

from __future__ import annotations

from dataclasses import dataclass

from graph.gauges import given_limits
from graph.runner import Runner
from graph.session import standing
from graph.settings import Settings, settings_from_run
from graph.summary import policy_hash
from memory.events import AgentEvent, EvaluatedCandidate
from memory.records import Run, RunStatus, Timing
from memory.store import Store

STARTING = "starting"
"""Status of a run whose process has not taken it up yet."""
_TOLD_ROLES = ("planner", "profiler", "critic", "operator")


@dataclass(frozen=True)
class Glance:
    """A run at one moment."""

    run: Run
    status: str
    """As in graph.summary.Summary, or STARTING."""
    worker: int | None
    """Pid of the process that works on it."""
    generation: int | None
    """Of the newest candidate, from 0; None before there is one."""
    generations: int
    """At most."""
    evaluations: int
    by_status: dict[str, int]
    best: EvaluatedCandidate | None
    """The verified winner, or else the fastest that passed."""
    decisions: tuple[AgentEvent, ...]
    """The last ones of those who decide on more than one candidate, in order."""

    @property
    def timing(self) -> Timing | None:
        """The best candidate's time."""
        return self.best.evaluation.timing if self.best and self.best.evaluation else None


def glance(run: Run, store: Store, settings: Settings, runner: Runner, *, decisions: int = 3) -> Glance:
    """Look at a run. Raises StoreError."""
    # In this order: what the process did before it ended is seen.
    worker = runner.worker(run.id)
    now = store.run(run.id)
    judged_under = policy_hash(run)
    status = standing(now, store, settings)
    if worker is not None and status != RunStatus.RUNNING.value and not now.status.ended:
        status = STARTING
    counts = store.counts(run.id, policy_hash=judged_under)
    best = (
        store.evaluated_one(run.id, now.best_candidate, policy_hash=judged_under)
        if now.best_candidate is not None
        else store.best_candidate(run.id, policy_hash=judged_under)
    )
    return Glance(
        run=now,
        status=status,
        worker=worker,
        generation=store.generation(run.id),
        generations=_generations(run, worker),
        evaluations=counts.evaluated,
        by_status={kind.value: number for kind, number in sorted(counts.by_status.items())},
        best=best,
        decisions=tuple(store.last_events(run.id, limit=decisions, roles=_TOLD_ROLES)),
    )


def _generations(run: Run, worker: int | None) -> int:
    """At most; a process that was given another limit goes by that."""
    given = given_limits(worker) if worker is not None else {}
    return int(given.get("--generations", settings_from_run(run.settings).generations))
