"""What a person does to a run besides watching: pin, kill and release candidates, and roll back to an earlier winner.

Here: keeping what was said; the command line and the app call the same.
Not here: what follows in the run (graph.population, graph.nodes). Invariant: what is said is a record in the store, and
a run that is at work reads it when it closes a generation.
"""

from __future__ import annotations

from datetime import UTC, datetime

from graph.shortfall import timing_of
from graph.summary import find_candidate
from memory.errors import BadInput
from memory.events import Review, Verdict
from memory.records import Run
from memory.store import Store

MARKS = {
    Verdict.PINNED: "{id} stays in the population from the next generation on, however it ranks",
    Verdict.KILLED: "{id} neither breeds nor wins from the next generation on",
    Verdict.RELEASED: "{id} is neither pinned nor killed any more",
}
"""What a person may say of a candidate while its run goes on, and the answer."""


def mark(run: Run, name: str, verdict: Verdict, store: Store, *, note: str = "") -> str:
    """Pin, kill or release a candidate; says what will become of it.

    Raises: BadInput for a run that has ended or has no such candidate, and for pinning one that did not pass.
    """
    if run.status.ended:
        raise BadInput(
            f"run {run.id} has ended ({run.status.words}); `warpsmith rollback` takes another of its candidates"
        )
    found = find_candidate(run, name, store)
    if verdict is Verdict.PINNED and timing_of(found) is None:
        raise BadInput(f"{name} did not pass, so it cannot be kept; pin one that passed")
    candidate_id = found.candidate.id
    # Microseconds: the same word said twice is two records, and the last one counts.
    at = datetime.now(UTC).isoformat(timespec="microseconds")
    store.put_review(Review(candidate_id=candidate_id, verdict=verdict, note=note, at=at))
    return MARKS[verdict].format(id=candidate_id)


def earlier_winner(run: Run, name: str, store: Store) -> str:
    """The id of the candidate to roll back to. Raises BadInput where it is none that could have won."""
    found = find_candidate(run, name, store)
    timing = timing_of(found)
    if timing is None or not timing.improved:
        what = "did not pass" if timing is None else f"is not faster than PyTorch ({timing.speedup:.2f}×)"
        raise BadInput(f"{name} {what}; roll back to a candidate that is, see `warpsmith show {run.id}`")
    if found.candidate.id == run.best_candidate:
        raise BadInput(f"{name} is the winner of run {run.id} already")
    return found.candidate.id
