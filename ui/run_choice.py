"""Which run a page is about: the one in its URL, or the newest; chosen among the newest ones."""

from __future__ import annotations

import streamlit as st

from graph.session import find_run
from memory.records import Run
from memory.store import Store
from ui.links import asked
from ui.words import nothing_yet

LISTED = 100


def chosen_run(store: Store, *, forget: tuple[str, ...] = ()) -> Run | None:
    """Draw the choice; None, with a sentence drawn, where the store has no run. Raises BadInput for an unknown id.

    forget: words of the URL that mean nothing in another run.
    """
    runs = store.runs(limit=LISTED)
    if not runs:
        nothing_yet(
            "There is no run yet.",
            "Start one in the chat, or with `warpsmith optimize examples/layernorm_gelu.py`.",
        )
        return None
    name = asked("run")
    shown = find_run(name, store) if name is not None else runs[0]
    listed = {run.id: run for run in runs} | {shown.id: shown}
    ids = list(listed)
    picked = st.selectbox(
        "Run",
        ids,
        index=ids.index(shown.id),
        format_func=lambda run_id: f"{run_id} · {listed[run_id].device} · {listed[run_id].status.words}",
        key=f"run-of-page-{shown.id}",
    )
    if picked != shown.id:
        for word in forget:
            st.query_params.pop(word, None)
        st.query_params["run"] = picked
        st.rerun()
    return shown
