"""A run's candidates, a page at a time: filtered, ordered, each with its family and a person's word on it."""

from __future__ import annotations

import streamlit as st

from agents.schemas import short_id
from graph.oversight import mark
from graph.summary import policy_hash
from graph.tables import idea_text
from memory.errors import WarpsmithError
from memory.events import EvaluatedCandidate, Verdict
from memory.records import Run, Status
from memory.store_views import Filter, Order
from ui.links import link
from ui.resources import store
from ui.words import as_sentence, nothing_yet, plain

PAGE = 25
"""Candidates shown at once."""
_ORDERS: dict[str, Order] = {"newest first": "newest", "fastest first": "fastest", "oldest first": "oldest"}
_ANY, _UNJUDGED = "any verdict", "not judged"
_MARKS = {
    "Pin": (Verdict.PINNED, ":material/push_pin:"),
    "Kill": (Verdict.KILLED, ":material/block:"),
    "Release": (Verdict.RELEASED, ":material/undo:"),
}


def draw_candidates(run: Run) -> None:
    """The table with its filter."""
    st.subheader("Candidates")
    if store().count_candidates(run.id) == 0:
        nothing_yet("There are none yet.", "The first generation writes them.")
        return
    only, order = _draw_filter()
    judged_under = policy_hash(run)
    at = st.session_state.get("candidates page", 1)
    found = store().candidate_page(
        run.id, policy_hash=judged_under, only=only, order=order, limit=PAGE, offset=(at - 1) * PAGE
    )
    if found.total == 0:
        nothing_yet(
            "No candidate fits.", "Ask for any verdict and empty the other fields to see all of them."
        )
        return
    st.dataframe(_columns(found.rows), hide_index=True, width="stretch", height="content")
    last = -(-found.total // PAGE)
    if last > 1:
        st.number_input(
            f"Page, of {last:,} ({found.total:,} candidates)", 1, last, key="candidates page", width=240
        )
    if found.rows:
        _draw_chosen(run, found.rows)


def _first_page() -> None:
    st.session_state["candidates page"] = 1


def _draw_filter() -> tuple[Filter, Order]:
    verdicts = [_ANY, *(status.value.replace("_", " ") for status in Status), _UNJUDGED]
    with st.container(horizontal=True):
        verdict = st.selectbox("Verdict", verdicts, width=180, on_change=_first_page)
        order = st.selectbox("Order", list(_ORDERS), width=160, on_change=_first_page)
        generation = st.number_input(
            "Generation", min_value=0, value=None, placeholder="any", width=130, on_change=_first_page
        )
        island = st.number_input(
            "Island", min_value=0, value=None, placeholder="any", width=130, on_change=_first_page
        )
        text = st.text_input("Words in its idea or id", width=200, on_change=_first_page)
    return Filter(
        status=None if verdict in (_ANY, _UNJUDGED) else Status(verdict.replace(" ", "_")),
        unjudged=verdict == _UNJUDGED,
        island=int(island) if island is not None else None,
        generation=int(generation) if generation is not None else None,
        text=text,
    ), _ORDERS[order]


def _columns(rows: tuple[EvaluatedCandidate, ...]) -> dict[str, list[object]]:
    timings = [row.evaluation.timing if row.evaluation else None for row in rows]
    return {
        "candidate": [short_id(row.candidate.id) for row in rows],
        "generation": [row.candidate.generation for row in rows],
        "island": [row.candidate.island for row in rows],
        "verdict": [
            row.evaluation.status.value.replace("_", " ") if row.evaluation else _UNJUDGED for row in rows
        ],
        "µs": [round(t.median_us, 3) if t else None for t in timings],
        "speedup": [round(t.speedup, 2) if t else None for t in timings],
        "idea": [idea_text(row.candidate) for row in rows],
    }


def _draw_chosen(run: Run, rows: tuple[EvaluatedCandidate, ...]) -> None:
    """One of them: its family, and a person's word on it while the run goes on."""
    names = {short_id(row.candidate.id): row.candidate.id for row in rows}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = st.selectbox("One of these", list(names), width=200)
        candidate = names[chosen]
        link(
            "lineage",
            "Its source and family",
            icon=":material/account_tree:",
            run=run.id,
            candidate=candidate,
        )
        link("traces", "What its agents did", icon=":material/list_alt:", run=run.id, candidate=candidate)
        if run.status.ended:
            return
        note = st.text_input("Why, for the record", width=260, key="mark note")
        for label, (verdict, icon) in _MARKS.items():
            if st.button(label, icon=icon):
                _mark(run, candidate, verdict, note)


def _mark(run: Run, candidate: str, verdict: Verdict, note: str) -> None:
    try:
        said = mark(store().run(run.id), candidate, verdict, store(), note=note)
    except WarpsmithError as error:
        st.error(as_sentence(str(error)), icon=":material/error:")
        return
    st.success(plain(as_sentence(said)))
