"""Innovations of the archive, drawn: a table of hits, one in full, two side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from graph.differences import difference
from memory.archive_entry import Hit
from memory.records import Innovation
from ui.links import link
from ui.plan_tables import draw_plan

SHORT = 12
"""Characters of an id that are shown, and that are enough for a person."""


def draw_hits(hits: Sequence[Hit], *, alike: bool, key: str) -> list[str]:
    """Draw a table; ids of what the viewer has ticked. alike: the likeness means something."""
    rows = [_row(hit, alike=alike) for hit in hits]
    event: Any = st.dataframe(
        rows,
        hide_index=True,
        width="stretch",
        height=min(38 + 35 * len(rows), 420),
        on_select="rerun",
        selection_mode="multi-row",
        column_config={"idea": st.column_config.TextColumn(width="large")},
        key=key,
    )
    return [hits[number].id for number in event.selection.get("rows", []) if number < len(hits)]


def draw_innovation(entry_id: str, innovation: Innovation, *, known_run: bool) -> None:
    """Draw one. known_run: its run is in this store."""
    st.subheader(f"Innovation {entry_id[:SHORT]}")
    st.text(innovation.idea)
    source = innovation.provenance.time_source
    numbers = (
        (f"Speedup over eager ({source})", f"{innovation.speedup:.2f}×"),
        (f"Time ({source})", f"{innovation.best_us:,.2f} µs"),
        ("Share of the floor", f"{innovation.floor_fraction:.0%}"),
    )
    with st.container(horizontal=True, gap="medium"):
        for label, value in numbers:
            st.metric(label, value, width="content")
    if known_run:
        link("lineage", "Its family", icon=":material/account_tree:", run=innovation.provenance.run_id)
    facts, code, plan = st.tabs(["Provenance", "Source", "Launch plan"])
    with facts:
        st.dataframe(
            [{"": name, "value": value} for name, value in facts_of(entry_id, innovation).items()],
            hide_index=True, width="stretch", height="content",
            column_config={"": st.column_config.TextColumn(width="small")},
        )  # fmt: skip
    with code:
        st.code(innovation.program.source, language="cpp", line_numbers=True)
    with plan:
        draw_plan(innovation.program)


def draw_comparison(first: tuple[str, Innovation], second: tuple[str, Innovation]) -> None:
    """Draw two side by side, and what changed from the first to the second."""
    names = first[0][:SHORT], second[0][:SHORT]
    st.subheader(f"{names[0]} and {names[1]}")
    left, right = facts_of(*first), facts_of(*second)
    st.dataframe(
        [
            {"": name, names[0]: left.get(name, ""), names[1]: right.get(name, "")}
            for name in dict.fromkeys((*left, *right))
        ],
        hide_index=True, width="stretch", height="content",
        column_config={"": st.column_config.TextColumn(width="small")},
    )  # fmt: skip
    found = difference(first[1].program, second[1].program, names=names)
    if found.nothing:
        st.caption("The programs are the same.")
    if found.tunables:
        st.markdown("**Tunables**")
        st.dataframe(
            [
                {"tunable": name, names[0]: _absent(before), names[1]: _absent(after)}
                for name, before, after in found.tunables
            ],
            hide_index=True,
        )
    if found.source:
        st.markdown("**Source**")
        st.code(found.source, language="diff")
    if found.plan:
        with st.expander("Launch plan"):
            st.code(found.plan, language="diff")


def facts_of(entry_id: str, innovation: Innovation) -> dict[str, str]:
    """What is known of an innovation besides its program, as a table shows it."""
    origin = innovation.provenance
    return {
        "id": entry_id,
        "problem": innovation.problem_name,
        "idea": innovation.idea,
        "operations": ", ".join(innovation.operations),
        "techniques": ", ".join(innovation.techniques),
        "dtype": innovation.dtype.value,
        "architecture": innovation.arch,
        "speedup over eager": f"{innovation.speedup:.2f}× ({origin.time_source})",
        "time": f"{innovation.best_us:,.2f} µs ({origin.time_source})",
        "share of the floor": f"{innovation.floor_fraction:.0%}",
        "verified by": f"{innovation.verification}, {origin.trials:,} random trials",
        "device": origin.device,
        "run": origin.run_id,
        "made": origin.created,
        "versions": ", ".join(f"{name} {version}" for name, version in origin.versions.items()),
    }


def _row(hit: Hit, *, alike: bool) -> dict[str, str]:
    found = hit.innovation
    row = {
        "problem": found.problem_name,
        "speedup": f"{found.speedup:.2f}×",
        "time is": found.provenance.time_source,
        "of floor": f"{found.floor_fraction:.0%}",
        "dtype": found.dtype.value,
        "arch": found.arch,
        "verified by": found.verification,
        "idea": found.idea,
        "made": found.provenance.created[:10],
    }
    return ({"likeness": f"{hit.similarity:.2f}"} if alike else {}) | row


def _absent(value: int | None) -> str:
    return "absent" if value is None else str(value)
