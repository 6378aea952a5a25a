"""The page of a family: the tree around a candidate, and everything about that candidate."""

from __future__ import annotations

import streamlit as st

from agents.schemas import short_id
from graph.family import Family, family_of
from memory.errors import BadInput
from memory.records import Run
from memory.store import Store
from ui.candidate_view import draw_candidate
from ui.family_chart import draw_family
from ui.links import asked
from ui.resources import store
from ui.run_choice import chosen_run
from ui.words import as_sentence, nothing_yet


def page() -> None:
    """Draw it: `?run=ID&candidate=ID`; without a candidate, the winner, or else the fastest."""
    st.title("Lineage")
    opened = store()
    run = chosen_run(opened, forget=("candidate",))
    if run is None:
        return
    family = _family(run, opened)
    if family is None:
        nothing_yet("This run has no candidate yet.", "Wait for its first generation, or resume the run.")
        return
    _draw(family, run, opened)


def _family(run: Run, opened: Store) -> Family | None:
    name = asked("candidate")
    try:
        return family_of(run, opened, name)
    except BadInput as error:
        if name is None:
            raise
        st.warning(as_sentence(str(error).partition(";")[0]) + " This is the winner, or else the fastest.")
        return family_of(run, opened)


def _draw(family: Family, run: Run, opened: Store) -> None:
    chosen = family.chosen.candidate
    st.subheader("Family")
    st.caption(
        f"{short_id(chosen.id)} has {_counted(family.ancestors, 'ancestor')} and "
        f"{_counted(family.children, 'child', 'children')}; oldest to the left. Click one to see it."
    )
    picked = draw_family(family, chosen.id)
    with st.form("other", border=False):
        field, button = st.columns([4, 1], vertical_alignment="bottom")
        other = field.text_input(
            "Another candidate of this run", placeholder="its id, such as 002-003", key="other-candidate"
        )
        if button.form_submit_button("Show it") and other.strip():
            picked = other.strip()
    if picked is not None and picked != asked("candidate"):
        st.query_params["run"] = run.id
        st.query_params["candidate"] = picked.removeprefix(f"{run.id}-")
        st.rerun()
    draw_candidate(family.chosen, run, opened)


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
