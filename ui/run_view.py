"""A run at one moment, drawn: what the chat shows while it is at work and after."""

from __future__ import annotations

import streamlit as st

from agents.schemas import short_id
from graph.glance import STARTING, Glance
from graph.summary import IN_REVIEW, LEFT
from graph.tables import us_text
from memory.events import AgentEvent
from memory.records import RunStatus
from ui.links import link
from ui.words import plain

_SHOWN = 150
"""Characters of a decision."""
COLOURS = {
    RunStatus.RUNNING.value: "blue",
    STARTING: "blue",
    RunStatus.IMPROVED.value: "green",
    IN_REVIEW: "orange",
    RunStatus.FAILED.value: "red",
}
_REPLIES = {
    RunStatus.RUNNING.value: ("Status", "Stop"),
    IN_REVIEW: ("Explain the winner", "Approve"),
    RunStatus.IMPROVED.value: ("Explain the winner", "Export"),
    RunStatus.NOT_IMPROVED.value: ("Why did it fail?",),
    RunStatus.FAILED.value: ("Why did it fail?",),
    **dict.fromkeys(LEFT, ("Resume", "Status")),
}


def replies(seen: Glance) -> tuple[str, ...]:
    """What a person may want to say next."""
    return _REPLIES.get(seen.status, ())


def draw_run(seen: Glance, *, follow: bool = True) -> None:
    """The run's standing, its numbers, its last decisions, and where to see more; `follow`: its own page too."""
    run = seen.run
    with st.container(border=True):
        colour = COLOURS.get(seen.status, "gray")
        st.markdown(f"**{plain(run.id)}** :{colour}-badge[{seen.status.replace('_', ' ')}]")
        _draw_numbers(seen)
        if seen.worker is not None:
            done = 0 if seen.generation is None else seen.generation
            st.progress(min(done / max(seen.generations, 1), 1.0))
        judged = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in seen.by_status.items())
        said = [plain(_decision(event, run.id)) for event in seen.decisions]
        st.caption("  \n".join([plain(f"{run.device}{f': {judged}' if judged else ''}"), *said]))
        _draw_links(seen, follow)


def _decision(event: AgentEvent, run_id: str) -> str:
    about = f" {short_id(event.candidate_id)}" if event.candidate_id else ""
    text = event.decision.replace(f"{run_id}-", "")
    return f"{event.role}{about}: {text if len(text) <= _SHOWN else f'{text[: _SHOWN - 1]}…'}"


def _draw_numbers(seen: Glance) -> None:
    timing = seen.timing
    kind = f" ({timing.source})" if timing else ""
    best = "Winner" if seen.status == RunStatus.IMPROVED.value else "Best so far"
    at = f"{seen.generation + 1} of {seen.generations}" if seen.generation is not None else "not begun"
    numbers = (
        ("Generation", at),
        ("Judged", str(seen.evaluations)),
        (f"{best}{kind}", us_text(timing.median_us) if timing else "none yet"),
        (f"Speedup{kind}", f"{timing.speedup:.2f}×" if timing else "none yet"),
    )
    with st.container(horizontal=True, gap="medium"):
        for label, value in numbers:
            st.metric(label, value, width="content")


def _draw_links(seen: Glance, follow: bool) -> None:
    run = seen.run.id
    with st.container(horizontal=True):
        if follow:
            link("runs", "Follow it", icon=":material/monitoring:", run=run)
        link("lineage", "Its family", icon=":material/account_tree:", run=run)
        if seen.status == IN_REVIEW:
            link("review", "Review the winner", icon=":material/fact_check:", run=run)
        if seen.run.best_candidate is not None:
            link("export", "Export", icon=":material/download:", run=run)
