"""What a person can say of a winner: approve, reject with a note, roll back; and what follows from it.

Invariant: what is said is done by a process of its own, as `warpsmith resume` and `warpsmith rollback` would.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from graph.runner import Answer
from memory.errors import WarpsmithError
from memory.records import Run
from ui.links import link
from ui.resources import runner
from ui.words import as_sentence, plain

_SAID = "said in review"


def draw_answer(run: Run, candidate: str) -> None:
    """The form to approve or reject the candidate that waits."""
    with st.form(f"review of {run.id}", border=True):
        note = st.text_area(
            "Note (with a rejection the critic reads it)",
            max_chars=2_000,
            placeholder="needs 90 KiB of shared memory",
        )
        with st.container(horizontal=True):
            approve = st.form_submit_button("Approve", type="primary", icon=":material/check:")
            reject = st.form_submit_button("Reject", icon=":material/close:")
    if approve:
        answer = Answer(approve=True, note=_line(note))
        _do(
            run,
            lambda: runner().start(run.id, answer=answer),
            f"{candidate} is approved: it is archived and exported",
        )
    if reject:
        answer = Answer(approve=False, note=_line(note))
        _do(
            run,
            lambda: runner().start(run.id, answer=answer),
            f"{candidate} is rejected: the next best is verified",
        )


def draw_rollback(run: Run, earlier: dict[str, str]) -> None:
    """The form to put another candidate into the winner's place. earlier: short id -> what it is."""
    with st.expander("Roll back to another candidate", icon=":material/undo:"):
        if not earlier:
            st.caption("No other candidate of this run beat PyTorch.")
            return
        with st.form(f"rollback of {run.id}", border=False):
            chosen = st.selectbox("Candidate", list(earlier), format_func=lambda name: earlier[name])
            note = st.text_input("Why", max_chars=500)
            asked = st.form_submit_button("Roll back", icon=":material/undo:")
        if asked and chosen is not None:
            _do(
                run,
                lambda: runner().roll_back(run.id, chosen, _line(note)),
                f"{chosen} goes through its soak and takes the winner's place if it passes",
            )


def draw_what_follows() -> None:
    """A sentence on what became of the last click, on the page that comes after it."""
    said = st.session_state.pop(_SAID, None)
    if said is None:
        return
    run_id, text, done = said
    (st.success if done else st.error)(plain(text))
    if done:
        link("runs", "Watch it", icon=":material/monitoring:", run=run_id)


def _do(run: Run, act: Callable[[], int], words: str) -> None:
    try:
        pid = act()
        said = (run.id, f"{words}. Process {pid} sees to it.", True)
    except WarpsmithError as error:
        said = (run.id, as_sentence(str(error)), False)
    st.session_state[_SAID] = said
    st.rerun()


def _line(text: str) -> str:
    """A note on one line: it travels on a command line."""
    return " ".join(text.split())
