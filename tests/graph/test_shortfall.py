"""Why a run has no winner: each reason in its own words, from records made by hand."""

from __future__ import annotations

import pytest

from graph.shortfall import ENDED, why_not
from memory.events import AgentEvent, EvaluatedCandidate, Review, Verdict
from memory.records import Evaluation, Profile, RunStatus, Status, Timing
from tests.memory import made


def row(
    name: str,
    median_us: float | None = None,
    *,
    spread: float = 0.0,
    status: Status = Status.INCORRECT,
    authored: float = 1.0,
    compiled_us: float | None = None,
) -> EvaluatedCandidate:
    """A judged candidate; eager takes 100 µs, from 99 to 101. `spread`: half its interval over its median.

    compiled_us: torch.compile's time, where that was asked for.
    """
    evaluation = made.evaluation(name, median_us=median_us, status=status)
    if evaluation.timing is not None and median_us is not None:
        low, high = median_us * (1 - spread), median_us * (1 + spread)
        baselines = evaluation.timing.baselines
        if compiled_us is not None:
            baselines += (made.baseline("compile", compiled_us),)
        timing = Timing.model_validate(
            {**evaluation.timing.model_dump(), "low_us": low, "high_us": high, "baselines": baselines}
        )
        profile = Profile(
            steps=(), bottleneck="memory", explanation="", floor_fraction=0.1, authored_share=authored
        )
        evaluation = evaluation.model_copy(update={"timing": timing, "profile": profile})
        Evaluation.model_validate(evaluation.model_dump())
    return EvaluatedCandidate(made.candidate(name, name), evaluation)


def event(decision: str, candidate_id: str | None = None) -> AgentEvent:
    return AgentEvent(
        id=decision,
        run_id="run-1",
        at="2026-01-01T00:00:00Z",
        role="critic",
        agent="rules",
        generation=0,
        candidate_id=candidate_id,
        latency_s=0.0,
        decision=decision,
    )


def reason(
    *rows: EvaluatedCandidate,
    status: RunStatus = RunStatus.NOT_IMPROVED,
    events: tuple[AgentEvent, ...] = (),
    reviews: tuple[Review, ...] = (),
) -> str | None:
    return why_not(status, rows, events, lambda id_: [r for r in reviews if r.candidate_id == id_])


@pytest.mark.parametrize(
    ("best", "said"),
    [
        (row("a", 98.0, spread=0.03), "best candidate 1.02×, but its interval, 0.981 to 1.06, includes 1"),
        (row("a", 150.0), "best candidate 0.67×: slower than PyTorch"),
        (
            row("a", 97.5),
            "best candidate 1.03×, but 1.02 to 1.04 is within the 3% that calling the same kernels otherwise gains",
        ),
        (row("a", 98.0, authored=0.0), "best candidate 1.02×, but it calls the same kernels as PyTorch"),
        (
            row("a", 50.0, compiled_us=40.0),
            "best candidate 2.00× over eager PyTorch, but 0.80× over torch.compile",
        ),
        (row("a", 150.0, compiled_us=200.0), "best candidate 0.67×: slower than PyTorch"),
    ],
)
def test_a_best_candidate_that_is_not_clearly_faster_is_explained(
    best: EvaluatedCandidate, said: str
) -> None:
    assert reason(row("slow", 400.0), best, row("wrong")) == said


@pytest.mark.parametrize(
    ("compiled_us", "improved"), [(None, True), (200.0, True), (60.0, True), (51.0, False), (40.0, False)]
)
def test_a_winner_beats_every_baseline_that_was_asked_for(compiled_us: float | None, improved: bool) -> None:
    judged = row("a", 50.0, compiled_us=compiled_us).evaluation
    assert judged is not None and judged.timing is not None
    assert judged.timing.improved is improved


def test_without_a_candidate_that_passed_the_verdicts_are_counted() -> None:
    rows = (row("a"), row("b", status=Status.COMPILE_ERROR), row("c"))
    assert reason(*rows) == "none of 3 candidates passed: 2 incorrect, 1 compile error"
    assert reason() == "no candidate was judged"


def test_a_refuted_winner_is_named_with_what_refuted_it() -> None:
    events = (event("refuted in its soak: output 0 is off", "a"), event("refuted in its soak: other", "b"))
    said = "best candidate 2.00×, but it was refuted in its soak: output 0 is off"
    assert reason(row("b", 60.0), row("a", 50.0), events=events) == said


def test_a_rejected_winner_is_named_with_the_note() -> None:
    review = Review(candidate_id="a", verdict=Verdict.REJECTED, note="ugly", at="2026-01-01T00:00:00Z")
    assert (
        reason(row("a", 50.0), reviews=(review,))
        == "best candidate 2.00×, but it was rejected in review: ugly"
    )


def test_a_run_that_failed_says_what_ended_it() -> None:
    failed = reason(status=RunStatus.FAILED, events=(event("other"), event(f"{ENDED}x cannot be judged")))
    assert failed == "x cannot be judged"


@pytest.mark.parametrize("status", [RunStatus.IMPROVED, RunStatus.RUNNING])
def test_a_run_that_improved_or_goes_on_needs_no_reason(status: RunStatus) -> None:
    assert reason(row("a", 150.0), status=status) is None
