"""What a person can do to a run: stop it, go on with it under new limits, tell its models something."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from graph.session import give_hint, standing
from graph.settings import settings_from_run, uses_models
from graph.summary import IN_REVIEW
from memory.errors import WarpsmithError
from memory.records import Run
from ui.links import link
from ui.resources import runner, settings, store
from ui.words import as_sentence, plain

_SAID = "said of run"


def draw_controls(run: Run) -> None:
    """Buttons that fit where the run stands, and what became of the last one."""
    said = st.session_state.pop(_SAID, None)
    if said is not None and said[0] == run.id:
        (st.success if said[1] else st.error)(plain(said[2]))
    if (worker := runner().worker(run.id)) is not None:
        _draw_stop(run, worker)
    elif not run.status.ended:
        if standing(run, store(), settings()) == IN_REVIEW:
            link("review", "Its winner waits for your word", icon=":material/fact_check:", run=run.id)
        else:
            _draw_resume(run)
    if not run.status.ended:
        _draw_hint(run)


def _draw_stop(run: Run, worker: int) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Stop", icon=":material/stop_circle:", key="stop"):
            with st.spinner("interrupting it"):
                _try(run, lambda: _stop(run))
        st.caption(
            f"Process {worker} works on it. Stopping pauses it: every verdict is kept, what is being judged right now "
            "is judged again, and it can be resumed."
        )


def _stop(run: Run) -> str:
    stopped = runner().stop(run.id)
    return (
        "stopped; nothing is lost, and it can be resumed" if stopped else "nobody was working on it any more"
    )


def _draw_resume(run: Run) -> None:
    kept = settings_from_run(run.settings)
    with st.form("resume", border=True):
        st.markdown("**Resume**")
        st.caption("It goes on where it stands, under its own settings. Limits are over all resumes.")
        first, second = st.columns(2)
        wall_s = first.number_input(
            "Seconds of searching", min_value=1.0, value=float(kept.wall_s), step=60.0
        )
        generations = second.number_input(
            "Generations", min_value=1, max_value=10_000, value=kept.generations
        )
        if st.form_submit_button("Resume", icon=":material/play_arrow:", type="primary"):
            _try(run, lambda: _resume(run, float(wall_s), int(generations)))


def _resume(run: Run, wall_s: float, generations: int) -> str:
    kept = settings_from_run(run.settings)
    pid = runner().start(
        run.id,
        wall_s=wall_s if wall_s != kept.wall_s else None,
        generations=generations if generations != kept.generations else None,
    )
    return f"process {pid} takes it up"


def _draw_hint(run: Run) -> None:
    with st.form("hint", border=False, clear_on_submit=True):
        field, button = st.columns([3, 1], vertical_alignment="bottom")
        text = field.text_input(
            "A hint for its models"
            if uses_models(run.settings)
            else "A hint (this run's agents are rules, which read none)",
            placeholder="try one block per row, and keep the row in registers",
            max_chars=2_000,
        )
        if button.form_submit_button("Give", icon=":material/lightbulb:", width="stretch"):
            _try(run, lambda: give_hint(store().run(run.id), text, store()))


def _try(run: Run, act: Callable[[], str]) -> None:
    """Do it, and draw the page again with a sentence on what became of it."""
    try:
        said, done = act(), True
    except WarpsmithError as error:
        said, done = str(error), False
    st.session_state[_SAID] = (run.id, done, as_sentence(said))
    st.rerun()
