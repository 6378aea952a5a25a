"""The page of traces: every step of every agent of a run, in order, filtered and paged by the store."""

from __future__ import annotations

import math

import streamlit as st

from graph.summary import find_candidate
from memory.errors import BadInput
from memory.records import Run
from memory.store import Store
from memory.store_traces import ROLES, Step, StepFilter, Totals
from ui.links import asked
from ui.resources import store
from ui.run_choice import chosen_run
from ui.step_view import draw_step, draw_steps
from ui.words import as_sentence, nothing_yet

PAGE = 50
_WORDS = ("role", "candidate", "failed", "text", "page", "step")


def page() -> None:
    """Draw it: `?run=ID&role=coder&candidate=001-002&failed=1&text=…&page=2&step=ID`."""
    st.title("Traces")
    opened = store()
    run = chosen_run(opened, forget=_WORDS)
    if run is None:
        return
    everything = opened.totals(run.id)
    if not everything.steps:
        nothing_yet("No agent has done anything in this run yet.", "Wait a moment, or resume the run.")
        return
    where = _filter(run, opened)
    found = everything if where == StepFilter() else opened.totals(run.id, where)
    _draw_totals(found, everything)
    if not found.steps:
        nothing_yet("No step fits these filters.", "Loosen one of them.")
        return
    pages = math.ceil(found.steps / PAGE)
    number = min(max(_whole(asked("page")), 1), pages)
    steps = opened.steps(run.id, where, limit=PAGE, offset=(number - 1) * PAGE)
    shown = f"{run.id}-{where}-{number}"
    picked = draw_steps(steps, run, key=f"steps-{shown}")
    if pages > 1:
        _turn(number, pages)
    _draw_open(_opened(picked, steps, run, opened), run, opened)


def _opened(picked: str | None, steps: list[Step], run: Run, opened: Store) -> Step | None:
    """The step that is open: the one just picked, or the one in the URL."""
    if picked is not None:
        st.query_params["step"] = picked.removeprefix(f"{run.id}-")
    name = picked or asked("step")
    if name is None:
        return None
    whole = name if name.startswith(f"{run.id}-") else f"{run.id}-{name}"
    return next((step for step in steps if step.id in (name, whole)), None) or opened.step(whole)


def _draw_open(step: Step | None, run: Run, opened: Store) -> None:
    if step is None:
        st.caption("Tick a step to see its prompt and reply, and what came of it.")
        return
    draw_step(step, run, opened)


def _filter(run: Run, opened: Store) -> StepFilter:
    """Draw the filters; what they ask for, which is in the URL too."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        role = st.selectbox(
            "Role", ["any", *ROLES], index=_place(asked("role")), key=f"role-{run.id}", width=160
        )
        name = st.text_input(
            "Candidate", asked("candidate") or "", placeholder="such as 002-003", key=f"candidate-{run.id}",
            width=170,
        )  # fmt: skip
        text = st.text_input(
            "Text", asked("text") or "", placeholder="in decisions, prompts, replies", key=f"text-{run.id}",
            width=250,
        )  # fmt: skip
        failed = st.toggle("Failures only", asked("failed") is not None, key=f"failed-{run.id}")
    wanted = {
        "role": "" if role == "any" else role,
        "candidate": name.strip(),
        "text": text.strip(),
        "failed": "1" if failed else "",
    }
    if any((asked(word) or "") != value for word, value in wanted.items()):
        for word in ("page", "step"):
            st.query_params.pop(word, None)
    for word, value in wanted.items():
        if value:
            st.query_params[word] = value
        else:
            st.query_params.pop(word, None)
    return StepFilter(
        role=wanted["role"] or None,
        candidate_id=_candidate(wanted["candidate"], run, opened),
        failed=failed,
        text=wanted["text"],
    )


def _candidate(name: str, run: Run, opened: Store) -> str | None:
    if not name:
        return None
    try:
        return find_candidate(run, name, opened).candidate.id
    except BadInput as error:
        st.warning(as_sentence(str(error).partition(";")[0]))
        return name


def _draw_totals(found: Totals, everything: Totals) -> None:
    steps = f"{found.steps:,}" if found == everything else f"{found.steps:,} of {everything.steps:,}"
    numbers = [("Steps", steps), ("Model calls", f"{found.calls:,}")]
    if everything.calls:
        cost = f"${found.cost_usd:,.4f}"
        numbers += [
            ("Tokens in", f"{found.tokens_in:,}"),
            ("Tokens out", f"{found.tokens_out:,}"),
            ("Cost", cost),
            (
                "Waited for models",
                f"{found.waited_s:,.1f} s",
            ),
        ]
    with st.container(horizontal=True, gap="medium"):
        for label, value in numbers:
            st.metric(label, value, width="content")
    if found.unpriced:
        st.caption(f"The cost leaves out {found.unpriced:,} calls of models whose price is not known.")
    if not everything.calls:
        st.caption("The agents of this run are rules: they cost nothing, and have no prompts.")


def _turn(number: int, pages: int) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        before = st.button("Earlier", disabled=number == 1, icon=":material/chevron_left:")
        after = st.button("Later", disabled=number == pages, icon=":material/chevron_right:")
        st.caption(f"Page {number} of {pages}", width="content")
    if before or after:
        st.query_params["page"] = str(number + (1 if after else -1))
        st.query_params.pop("step", None)
        st.rerun()


def _place(name: str | None) -> int:
    return ROLES.index(name) + 1 if name in ROLES else 0


def _whole(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < 9 else 1
