"""The roofline plot: a GPU's two roofs in log-log scale, and a dot for each step of a plan."""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt
import streamlit as st

from graph.roofs import Dot, Roofs
from ui.charts import GRAY, inline, own_or_library


def draw_roofline(roofs: Roofs, dots: Sequence[Dot], *, without: Sequence[str], source: str) -> None:
    """Draw it, with what it says in words. source: whether the steps' times were measured or modelled."""
    low = min([0.1, *(dot.intensity / 3 for dot in dots)])
    knee = roofs.peak_tflops * 1e3 / roofs.bandwidth_gbps
    high = max([knee * 10, *(dot.intensity * 3 for dot in dots)])
    bottom = min([roofs.reachable_tflops(low), *(dot.tflops / 2 for dot in dots)])
    x = alt.X(
        "intensity:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(
            title="arithmetic intensity, FLOP per byte of DRAM traffic", format="~g", tickCount=6, grid=False
        ),
    )
    y = alt.Y(
        "tflops:Q",
        scale=alt.Scale(type="log", domain=[bottom, roofs.peak_tflops * 2], nice=False),
        axis=alt.Axis(title="TFLOP/s", format="~g", tickCount=6, grid=False),
    )
    path = [{"intensity": at, "tflops": roofs.reachable_tflops(at)} for at in (low, knee, high)]
    layers: list[alt.Chart] = [alt.Chart(inline(path)).mark_line(color=GRAY, strokeWidth=2).encode(x=x, y=y)]
    if roofs.plain_tflops < roofs.peak_tflops:
        bend = roofs.plain_tflops * 1e3 / roofs.bandwidth_gbps
        plain = [{"intensity": at, "tflops": roofs.plain_tflops} for at in (bend, high)]
        layers.append(alt.Chart(inline(plain)).mark_line(color=GRAY, strokeDash=[5, 4]).encode(x=x, y=y))
    layers.append(
        alt.Chart(inline(_labels(roofs, low, high)))
        .mark_text(color=GRAY, align="right", baseline="bottom", dy=-3)
        .encode(x=x, y=y, text="text:N")
    )
    layers += _dots(dots, x, y)
    chart = alt.layer(*layers).properties(height=320)
    st.altair_chart(chart, width="stretch")
    st.caption(_words(dots, without, source))


def _labels(roofs: Roofs, low: float, high: float) -> list[dict[str, str | float]]:
    found: list[dict[str, str | float]] = [
        {
            "intensity": high,
            "tflops": roofs.peak_tflops,
            "text": f"{roofs.peak_tflops:g} TFLOP/s, fastest unit",
        }
    ]
    if roofs.plain_tflops < roofs.peak_tflops:
        found.append(
            {
                "intensity": high,
                "tflops": roofs.plain_tflops,
                "text": f"{roofs.plain_tflops:g} TFLOP/s, plain FP32",
            }
        )
    slope = math.sqrt(low * roofs.plain_tflops * 1e3 / roofs.bandwidth_gbps)
    found.append(
        {
            "intensity": slope,
            "tflops": roofs.reachable_tflops(slope),
            "text": f"{roofs.bandwidth_gbps:,.0f} GB/s DRAM  ",
        }
    )
    return found


def _dots(dots: Sequence[Dot], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    if not dots:
        return []
    values = [
        {
            "intensity": dot.intensity,
            "tflops": dot.tflops,
            "name": dot.name,
            "kind": "own kernel" if dot.authored else "library call",
            "us": f"{dot.us:,.2f} µs",
            "share": f"{dot.share:.0%} of the roof",
            "numbers": "hardware counters" if dot.counted else "modelled or estimated from shapes",
        }
        for dot in dots
    ]
    base = alt.Chart(inline(values)).encode(x=x, y=y)
    points = base.mark_point(filled=True, size=140, opacity=1).encode(
        color=own_or_library(),
        tooltip=[f"{name}:N" for name in ("name", "kind", "us", "share", "numbers")],
    )
    if len(dots) > 6:
        return [points]
    return [points, base.mark_text(dy=16, color=GRAY).encode(text="name:N")]


def _words(dots: Sequence[Dot], without: Sequence[str], source: str) -> str:
    counted = all(dot.counted for dot in dots)
    numbers = "hardware counters" if counted else "a model, or estimated from shapes"
    said = f"Times are {source}; bytes and FLOPs are from {numbers}." if dots else ""
    if without:
        number = len(without)
        kinds = "step has" if number == 1 else "steps have"
        said += f" {number} {kinds} no FLOPs or no DRAM traffic, and so no dot."
    return said.strip()
