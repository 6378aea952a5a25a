"""Agents' steps, drawn: a page of them as a table, and one of them opened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import streamlit as st

from agents.schemas import short_id
from graph.traces import Explanation, explain
from memory.records import Run
from memory.store import Store
from memory.store_traces import Step
from ui.links import link
from ui.markdown import draw_rendered


def draw_steps(steps: Sequence[Step], run: Run, key: str) -> str | None:
    """Draw the table; the id of the step that the viewer has ticked."""
    models = any(step.agent == "model" for step in steps)
    rows = [_row(step, run, models=models) for step in steps]
    event: Any = st.dataframe(
        rows,
        hide_index=True,
        width="stretch",
        height=min(38 + 35 * len(rows), 460),
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "decision": st.column_config.TextColumn(width="large"),
            "gen.": st.column_config.NumberColumn(width="small"),
        },
        key=key,
    )
    chosen: Iterable[int] = event.selection.get("rows", []) if event else []
    return next((steps[number].id for number in chosen if number < len(steps)), None)


def draw_step(step: Step, run: Run, store: Store) -> None:
    """Draw one step: what was decided, why it failed and what happened next, what was asked and said."""
    event = store.event(step.id)
    if event is None:
        return
    st.subheader(f"{step.role.capitalize()}, generation {step.generation}")
    st.text(step.decision.replace(f"{run.id}-", ""))
    facts = [_agent(step), step.at[:19].replace("T", " ") + " UTC"]
    if step.move:
        facts.append(f"move: {step.move}")
    if step.agent == "model":
        facts += [_tokens(step), _cost(step), f"{step.latency_s:,.1f} s"]
    st.text(" · ".join(fact for fact in facts if fact))
    explained = explain(step, run, store)
    if explained is not None:
        _draw_explanation(explained)
    if step.candidate_id is not None:
        short = short_id(step.candidate_id)
        with st.container(horizontal=True):
            link("lineage", f"Candidate {short}", icon=":material/account_tree:", run=run.id, candidate=short)
    if not event.prompt and not event.reply:
        if step.agent == "rules":
            st.caption("Rules decided this, so there is no prompt and no reply.")
        return
    raw = st.toggle("Raw text", key=f"raw-{step.id}")
    reply, prompt = st.tabs(["Reply", "Prompt"])
    with reply:
        _draw_text(event.reply, "The model gave no reply.", raw=raw)
    with prompt:
        _draw_text(event.prompt, "The prompt was not kept.", raw=raw)


def _draw_explanation(found: Explanation) -> None:
    with st.container(border=True):
        st.markdown(":material/error: **Why it failed**")
        st.text(found.why)
        st.markdown(":material/redo: **What happened next**")
        st.text(found.then)
        verdict = found.made.evaluation if found.made is not None else None
        if verdict is None:
            return
        with st.expander(f"Diagnostics ({len(verdict.diagnostics)})"):
            for diagnostic in verdict.diagnostics:
                where = f", line {diagnostic.line}" if diagnostic.line is not None else ""
                st.text(f"{diagnostic.rule}{where}: {diagnostic.message}")
                if diagnostic.excerpt:
                    st.code(diagnostic.excerpt, language="cpp")


def _draw_text(text: str, absent: str, *, raw: bool) -> None:
    if not text:
        st.caption(absent)
    elif raw:
        st.code(text, language=None, wrap_lines=True)
    else:
        draw_rendered(text)


def _row(step: Step, run: Run, *, models: bool) -> dict[str, str | int]:
    row: dict[str, str | int] = {
        "": "failed" if step.failed else "",
        "gen.": step.generation,
        "role": step.role,
        "by": _agent(step),
        "candidate": short_id(step.candidate_id) if step.candidate_id else "",
    }
    if models:
        row |= {"tokens": _tokens(step), "cost": _cost(step)}
        row["latency"] = f"{step.latency_s:,.1f} s" if step.agent == "model" else ""
    return row | {"decision": step.decision.replace(f"{run.id}-", "")}


def _agent(step: Step) -> str:
    return step.model or step.agent


def _tokens(step: Step) -> str:
    if step.tokens_in is None and step.tokens_out is None:
        return ""
    return f"{step.tokens_in or 0:,} in, {step.tokens_out or 0:,} out"


def _cost(step: Step) -> str:
    return f"${step.cost_usd:,.4f}" if step.cost_usd is not None else ""
