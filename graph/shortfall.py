"""Why a run ended without a winner, in one line. Pure: reads what the store kept of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from memory.evaluation_records import SAME_KERNELS_GAIN
from memory.events import AgentEvent, EvaluatedCandidate, Review, Verdict
from memory.records import Evaluation, RunStatus, Timing

ENDED = "the run ended: "
"""How the decision begins that says why a run failed."""
REFUTED = "refuted"
"""How the decisions begin that refute a candidate after its verdict."""

FELL_BACK = "more than a fifth of a gentle generation failed too"
"""How the decision begins that ends a search whose device or measuring cannot be trusted."""

REASONS = (ENDED, REFUTED, FELL_BACK)
"""Beginnings of the decisions that `why_not` looks for."""

Reviews = Callable[[str], Sequence[Review]]
"""Candidate id -> what people said of it."""


def why_not(
    status: RunStatus,
    rows: Sequence[EvaluatedCandidate],
    events: Sequence[AgentEvent],
    reviews: Reviews,
) -> str | None:
    """One line for people; None while the run goes on and where it improved."""
    if status is RunStatus.FAILED:
        reasons = [e.decision.removeprefix(ENDED) for e in events if e.decision.startswith(ENDED)]
        return reasons[-1] if reasons else "the module could not be judged"
    if status is not RunStatus.NOT_IMPROVED:
        return None
    passed = sorted((timing.median_us, i) for i, row in enumerate(rows) if (timing := timing_of(row)))
    if not passed:
        return _none_passed(rows)
    best = rows[passed[0][1]]
    timing = timing_of(best)
    assert timing is not None and best.evaluation is not None
    head = f"best candidate {timing.speedup:.2f}×"
    fallen = [event.decision for event in events if event.decision.startswith(FELL_BACK)]
    if fallen:
        return f"{head}, but {fallen[-1]}"
    if timing.improved:
        return f"{head}, but {_refutation(best, events, reviews)}"
    return f"{head}{_not_faster(timing, best.evaluation)}"


def timing_of(row: EvaluatedCandidate) -> Timing | None:
    """A candidate's time, if it passed."""
    return row.evaluation.timing if row.evaluation else None


def _none_passed(rows: Sequence[EvaluatedCandidate]) -> str:
    counts = Counter(row.evaluation.status.value.replace("_", " ") for row in rows if row.evaluation)
    if not counts:
        return "no candidate was judged"
    said = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    return f"none of {counts.total()} candidates passed: {said}"


def _refutation(best: EvaluatedCandidate, events: Sequence[AgentEvent], reviews: Reviews) -> str:
    rejections = [r for r in reviews(best.candidate.id) if r.verdict is Verdict.REJECTED]
    if rejections:
        note = rejections[-1].note
        return "it was rejected in review" + (f": {note}" if note else "")
    said = [
        event.decision
        for event in events
        if event.candidate_id == best.candidate.id and event.decision.startswith(REFUTED)
    ]
    return f"it was {said[-1]}" if said else "it was refuted"


def _not_faster(timing: Timing, evaluation: Evaluation) -> str:
    """What keeps a candidate that passed from counting as faster."""
    bar = timing.bar
    low, high = bar.low_us / timing.high_us, bar.high_us / timing.low_us
    if bar.name != "eager" and low <= SAME_KERNELS_GAIN:
        return f" over eager PyTorch, but {bar.median_us / timing.median_us:.2f}× over torch.compile"
    if high < 1:
        return ": slower than PyTorch"
    if evaluation.profile is not None and evaluation.profile.authored_share == 0:
        return ", but it calls the same kernels as PyTorch"
    interval = f"{low:.3g} to {high:.3g}"
    if low <= 1:
        return f", but its interval, {interval}, includes 1"
    gain = f"{SAME_KERNELS_GAIN - 1:.0%}"
    return f", but {interval} is within the {gain} that calling the same kernels otherwise gains"
