"""The page of export: a run's module, program and report to take away. What they say is made in graph/."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import streamlit as st

from graph.report import next_steps, report_html, report_markdown
from graph.report_facts import ReportFacts, gather
from graph.session import export_again
from graph.settings import resolve_settings
from graph.tables import us_text
from memory.errors import BadInput
from memory.records import Program, Run
from memory.store import Store
from ui.links import asked, link
from ui.resources import settings, store
from ui.words import as_sentence, nothing_yet, plain, telling_errors

LISTED = 50


def page() -> None:
    """Draw it."""
    st.title("Export")
    run = _chosen(store())
    if run is None:
        nothing_yet(
            "There are no runs yet.", "Optimize a module first: its winner and its report appear here."
        )
        link("chat", "Go to the chat", icon=":material/forum:")
        return
    with st.spinner("Reading the run"):
        facts = gather(run, store(), settings())
    _draw_outcome(facts)
    _draw_files(facts)
    st.subheader("Report")
    st.caption(
        "What was found, on what, how fast, what was verified and what was not. The HTML file has the plots."
    )
    _draw_reports(facts)


def _chosen(kept: Store) -> Run | None:
    """The run that the URL names, or the newest; another one can be picked."""
    runs = kept.runs(limit=LISTED)
    wanted = asked("run")
    named = None
    if wanted is not None:
        try:
            named = kept.run(wanted)
        except BadInput as error:
            st.error(as_sentence(str(error)), icon=":material/error:")
    if not runs:
        return None
    offered = {run.id: run for run in ([named] if named else []) + runs}
    chosen = st.selectbox(
        "Run",
        list(offered),
        index=list(offered).index(named.id) if named else 0,
        format_func=lambda run_id: f"{run_id} · {offered[run_id].status.words}",
    )
    if chosen != asked("run"):
        st.query_params["run"] = chosen
    return offered[chosen]


def _draw_outcome(facts: ReportFacts) -> None:
    timing, run = facts.timing, facts.run
    if facts.won and timing is not None:
        with st.container(horizontal=True, gap="medium"):
            st.metric(f"Speedup over eager ({timing.source})", f"{timing.speedup:.2f}×", width="content")
            st.metric(f"One forward ({timing.source})", us_text(timing.median_us), width="content")
            st.metric("Floor", us_text(timing.floor_us), width="content")
        if timing.source == "modelled":
            st.caption(
                "Times are modelled by the simulator, not measured: measure on a GPU before relying on them."
            )
        return
    why = f": {facts.why_not}" if facts.why_not else ""
    st.warning(
        plain(
            f"This run has no verified winner ({facts.status.replace('_', ' ')}){why}. Its result is PyTorch itself."
        ),
        icon=":material/info:",
    )
    for step in next_steps(facts.status, run.id):
        st.markdown(f"- {plain(step)}")
    with st.container(horizontal=True):
        link("lineage", "See its candidates", icon=":material/account_tree:", run=run.id)
        link("runs", "See the run", icon=":material/monitoring:", run=run.id)


def _draw_files(facts: ReportFacts) -> None:
    if facts.program is None or facts.row is None:
        return
    st.subheader("Files" if facts.won else "The fastest program that passed its trials")
    name = facts.run.id
    with st.container(horizontal=True):
        if facts.won:
            _draw_module(facts)
        _download(
            "Program (.json)",
            f"{name}.json",
            "application/json",
            lambda: _program_json(facts.program),
            "data_object",
        )
        _download("Kernels (.cu)", f"{name}.cu", "text/plain", lambda: _source(facts.program), "memory")
    if facts.won and (path := facts.export_path):
        st.caption(plain(f"The module is kept at {path}"))
    with st.expander("Kernels", icon=":material/code:"):
        st.code(
            facts.program.source or "This program has no kernels of its own: it calls libraries only.", "cpp"
        )


def _draw_module(facts: ReportFacts) -> None:
    """The exported file where it still is; else a button that writes it again."""
    path = facts.export_path
    if path is not None:
        _download(
            "Module (.py)",
            path.name,
            "text/x-python",
            lambda: path.read_text(),
            "download",
            first=True,
        )
        return
    if st.button("Write the module again", icon=":material/refresh:", type="primary"):
        with telling_errors(), st.spinner("Writing it"):
            kept = resolve_settings(
                **(settings().model_dump() | {"export_dir": Path(facts.run.settings["export_dir"])})
            )
            export_again(facts.run, store(), kept)
            st.rerun()


def _draw_reports(facts: ReportFacts) -> None:
    name = f"{facts.run.id}-report"
    with st.container(horizontal=True):
        _download("Report (.html)", f"{name}.html", "text/html", lambda: report_html(facts), "description")
        _download("Report (.md)", f"{name}.md", "text/markdown", lambda: report_markdown(facts), "article")
    with st.expander("Read it here", icon=":material/visibility:", expanded=True):
        # A data: address has an origin of its own: nothing in the report could reach the app.
        content = base64.b64encode(report_html(facts).encode()).decode()
        st.iframe(f"data:text/html;base64,{content}", height=700, alt="the report")


def _download(
    label: str, file: str, mime: str, made: Callable[[], str], icon: str, *, first: bool = False
) -> None:
    """A button whose file is made when it is clicked."""
    st.download_button(
        label,
        data=made,
        file_name=file,
        mime=mime,
        icon=f":material/{icon}:",
        type="primary" if first else "secondary",
        on_click="ignore",
    )


def _program_json(program: Program | None) -> str:
    return program.model_dump_json(indent=1) if program else ""


def _source(program: Program | None) -> str:
    """The kernels as the agent wrote them, with the tunables' values before them."""
    if program is None:
        return ""
    values = "".join(f"#define {name} {value}\n" for name, value in program.tunable_values().items())
    return f"{values}\n{program.source}"
