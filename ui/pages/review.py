"""The page of reviews: winners that wait for a person's word, the evidence for each, and what was said before."""

from __future__ import annotations

import streamlit as st

from agents.schemas import short_id
from graph.evidence import not_verified, verified
from graph.lineage import lineage
from graph.oversight import earlier_winner
from graph.session import find_run, standing, waiting_runs
from graph.summary import find_candidate, policy_hash
from memory.errors import BadInput
from memory.events import EvaluatedCandidate, Review, Verdict
from memory.records import Run, RunStatus, Status
from memory.store_views import Filter
from ui.candidate_view import draw_candidate
from ui.links import asked, link
from ui.resources import runner, settings, store
from ui.review_form import draw_answer, draw_rollback, draw_what_follows
from ui.words import nothing_yet, plain

_PAST = 50
_FASTEST = 30
"""Candidates offered to roll back to."""
_DECIDING = (Verdict.APPROVED, Verdict.REJECTED, Verdict.ROLLED_BACK)


def page() -> None:
    """Draw it."""
    st.title("Review")
    draw_what_follows()
    waiting = dict(_waiting())
    name = asked("run")
    run = find_run(name, store()) if name is not None else None
    if run is None and not waiting:
        nothing_yet(
            "No winner waits for your word.",
            "Start one with `warpsmith optimize net.py --review`, or say in the chat 'and let me approve it': the run "
            "then pauses before its winner is archived and exported.",
        )
    elif run is None or run.id in waiting:
        _draw_waiting(waiting, run)
    else:
        _draw_other(run)
    _draw_past()


def _waiting() -> list[tuple[str, tuple[Run, str]]]:
    return [(run.id, (run, candidate)) for run, candidate in waiting_runs(store(), settings())]


def _draw_waiting(waiting: dict[str, tuple[Run, str]], chosen: Run | None) -> None:
    ids = list(waiting)
    first = ids.index(chosen.id) if chosen is not None else 0
    picked = st.selectbox(
        f"{len(ids)} waiting", ids, index=first, key=f"waiting-{chosen.id if chosen else ''}"
    )
    if chosen is not None and picked != chosen.id:
        st.query_params["run"] = picked
        st.rerun()
    run, candidate_id = waiting[picked]
    row = find_candidate(run, candidate_id, store())
    _draw_evidence(row, run)
    st.subheader("Your word")
    draw_answer(run, short_id(candidate_id))
    draw_rollback(run, _earlier(run, row))


def _draw_other(run: Run) -> None:
    """A run that was asked for and does not wait."""
    if (pid := runner().worker(run.id)) is not None:
        st.info(f"Process {pid} works on run {run.id}; its winner is not up for review now.")
        link("runs", "Watch it", icon=":material/monitoring:", run=run.id)
    elif run.status is RunStatus.IMPROVED and run.best_candidate is not None:
        row = find_candidate(run, run.best_candidate, store())
        st.info(f"Run {run.id} has ended with a winner. You may still roll back to an earlier one.")
        _draw_evidence(row, run)
        draw_rollback(run, _earlier(run, row))
    else:
        said = standing(run, store(), settings()).replace("_", " ")
        nothing_yet(
            f"Run {run.id} does not wait for review ({said}).", "Its page says what can be done with it."
        )
        link("runs", "Its page", icon=":material/monitoring:", run=run.id)


def _draw_evidence(row: EvaluatedCandidate, run: Run) -> None:
    with st.container(border=True):
        passed, open_ = st.columns(2)
        with passed:
            st.markdown("**Verified**")
            for text in verified(row, run, store()):
                st.markdown(f":material/check: {plain(text)}")
        with open_:
            st.markdown("**Not verified**")
            for text in not_verified(row, run, store()):
                st.markdown(f":material/remove: {plain(text)}")
        examined = dict.fromkeys(store().events_about(run.id, row.candidate.id, roles=("profiler",)))
        if examined:
            st.markdown("**On a closer look**")
            for text in examined:
                st.caption(plain(text.replace(f"{run.id}-", "")))
    draw_candidate(row, run, store())
    _draw_line(row, run)


def _draw_line(row: EvaluatedCandidate, run: Run) -> None:
    steps = lineage(run, store(), row.candidate.id)
    with st.expander(
        f"How it came about: {len(steps)} step{'s' * (len(steps) != 1)}", icon=":material/account_tree:"
    ):
        st.dataframe(
            {
                "candidate": [short_id(step.candidate) for step in steps],
                "µs": [step.median_us for step in steps],
                "gain": [f"{step.gain:.2f}×" if step.gain is not None else "" for step in steps],
                "over eager": [f"{step.speedup:.2f}×" if step.speedup is not None else "" for step in steps],
                "idea": [step.idea for step in steps],
            },
            hide_index=True,
        )
        link("lineage", "Its family", icon=":material/account_tree:", run=run.id, candidate=row.candidate.id)


def _earlier(run: Run, row: EvaluatedCandidate) -> dict[str, str]:
    """Short ids of candidates that may take the winner's place -> what each is; the fastest first."""
    fastest = store().candidate_page(
        run.id,
        only=Filter(status=Status.PASSED),
        order="fastest",
        limit=_FASTEST,
        policy_hash=policy_hash(run),
    )
    found: dict[str, str] = {}
    for other in fastest.rows:
        name, evaluation = short_id(other.candidate.id), other.evaluation
        timing = evaluation.timing if evaluation else None
        if timing is None or other.candidate.id == row.candidate.id:
            continue
        try:
            earlier_winner(run, name, store())
        except BadInput:
            continue  # it could not have won
        found[name] = f"{name} · {timing.median_us:.3g} µs, {timing.speedup:.2f}× ({timing.source})"
    return found


def _draw_past() -> None:
    past = store().last_reviews(limit=_PAST, verdicts=_DECIDING)
    if not past:
        return
    st.subheader("What was said before")
    st.dataframe([_past_row(run_id, review) for run_id, review in past], hide_index=True)


def _past_row(run_id: str, review: Review) -> dict[str, str]:
    return {
        "at": review.at[:16].replace("T", " "),
        "run": run_id,
        "candidate": short_id(review.candidate_id),
        "word": review.verdict.value.replace("_", " ") + (f" to {short_id(review.to)}" if review.to else ""),
        "note": review.note,
    }
