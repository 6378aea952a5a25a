"""The family tree: a chart and a table of the same candidates, in both of which one can be chosen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import altair as alt
import streamlit as st

from agents.schemas import short_id
from graph.family import Family, Kin
from memory.records import Origin, Status
from ui.charts import GRAY, GREEN, PALE, RED, inline

LABELLED = 40
"""Nodes up to which each has its name written beside it."""
_VERDICTS = {"passed": GREEN, "failed": RED, "not judged": PALE}
_RELATIONS = {"ancestor": "circle", "itself": "diamond", "child": "triangle-right"}


def draw_family(family: Family, key: str) -> str | None:
    """Draw it; the id of a candidate that the viewer has just chosen, other than the one that is shown."""
    clicked = _chart(family, f"tree-{key}")
    if family.left_out:
        st.caption(family.left_out)
    with st.expander("The same as a table", expanded=len(family.kin) <= 12):
        picked = _table(family, f"table-{key}")
    chosen = family.chosen.candidate.id
    return next((found for found in (clicked, picked) if found is not None and found != chosen), None)


def made_by(origin: Origin) -> str:
    """Who made a candidate, in two words."""
    if origin.kind == "model":
        return f"{origin.detail} ({origin.move})" if origin.move else origin.detail
    return origin.kind


def verdict_of(status: Status | None) -> str:
    """As people read it."""
    return "not judged" if status is None else status.value.replace("_", " ")


def _chart(family: Family, key: str) -> str | None:
    rows = [_row(one) for one in family.kin]
    at = {one.candidate.id: one for one in family.kin}
    lines = [
        {
            "layer": at[parent].layer, "place": at[parent].place, "to_layer": at[child].layer,
            "to_place": at[child].place,
        }
        for parent, child in family.links
    ]  # fmt: skip
    layers = max(one.layer for one in family.kin) + 1
    widest = max(abs(one.place) for one in family.kin) + 0.7
    x = alt.X("layer:Q", axis=None, scale=alt.Scale(domain=[-0.5, layers - 0.5], nice=False))
    y = alt.Y("place:Q", axis=None, scale=alt.Scale(domain=[-widest, widest], nice=False))
    links = (
        alt.Chart(inline(lines))
        .mark_rule(color=GRAY, opacity=0.45)
        .encode(x=x, y=y, x2="to_layer:Q", y2="to_place:Q")
    )
    node = alt.selection_point(name="node", fields=["id"], on="click", clear=False)
    nodes = (
        alt.Chart(inline(rows))
        .mark_point(filled=True, opacity=1, cursor="pointer")
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "verdict:N",
                scale=alt.Scale(domain=list(_VERDICTS), range=list(_VERDICTS.values())),
                legend=alt.Legend(title=None, orient="top"),
            ),
            shape=alt.Shape(
                "relation:N",
                scale=alt.Scale(domain=list(_RELATIONS), range=list(_RELATIONS.values())),
                legend=alt.Legend(
                    title=None, orient="top", symbolFillColor=GRAY, symbolStrokeColor=GRAY
                ),
            ),
            size=alt.condition("datum.relation == 'itself'", alt.value(420), alt.value(150)),
            tooltip=[
                alt.Tooltip(f"{name}:N", title=title)
                for name, title in (
                    ("candidate", "candidate"), ("generation", "generation"), ("said", "verdict"), ("us", "time"),
                    ("gain", "gain"), ("by", "made by"), ("idea", "idea"),
                )
            ],
        )
        .add_params(node)
    )  # fmt: skip
    shown = [links, nodes]
    if len(rows) <= LABELLED:
        shown.append(
            alt.Chart(inline(rows))
            .mark_text(dy=-16, color=GRAY, fontSize=11)
            .encode(x=x, y=y, text="candidate:N")
        )
    height = int(min(max(140, 52 * 2 * widest), 620))
    chart = alt.layer(*shown).properties(height=height)
    event: Any = st.altair_chart(chart, width="stretch", on_select="rerun", selection_mode="node", key=key)
    points = event.selection.get("node", []) if event else []
    return next((str(point["id"]) for point in points if "id" in point), None)


def _table(family: Family, key: str) -> str | None:
    rows = [_row(one) for one in family.kin]
    columns = ("candidate", "relation", "generation", "said", "us", "gain", "by", "idea")
    event: Any = st.dataframe(
        [{name: row[name] for name in columns} for row in rows],
        hide_index=True,
        width="stretch",
        height=min(38 + 35 * len(rows), 360),
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "said": "verdict",
            "us": "time",
            "by": "made by",
            "idea": st.column_config.TextColumn("idea", width="large"),
        },
        key=key,
    )
    chosen: Iterable[int] = event.selection.get("rows", []) if event else []
    return next((str(rows[number]["id"]) for number in chosen if number < len(rows)), None)


def _row(one: Kin) -> dict[str, str | int | float]:
    candidate = one.candidate
    group = "not judged" if one.status is None else "passed" if one.status is Status.PASSED else "failed"
    return {
        "id": candidate.id,
        "candidate": short_id(candidate.id),
        "layer": one.layer,
        "place": one.place,
        "relation": one.relation,
        "verdict": group,
        "said": verdict_of(one.status),
        "generation": candidate.generation,
        "us": f"{one.median_us:,.2f} µs" if one.median_us is not None else "",
        "gain": f"{one.gain:.2f}×" if one.gain is not None else "",
        "by": made_by(candidate.origin),
        "idea": candidate.idea.replace(f"{candidate.run_id}-", ""),
    }
