"""Plots of a run: its course by generation, its population, its islands. They read in light and dark themes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import altair as alt
import streamlit as st

from graph.curves import CurvePoint, Level
from memory.records import Status
from memory.store_views import GenerationLine, IslandLine

_HEIGHT = 260
_BEST, _OTHER, _GOOD, _PLAIN = "#3b82f6", "#94a3b8", "#16a34a", "#9ca3af"
_LEVELS = ("#f59e0b", "#a855f7", "#ec4899", "#16a34a")
_FAILED = ("#ef4444", "#f97316", "#eab308", "#a855f7", "#ec4899", "#0ea5e9", "#78716c", "#14b8a6", "#f43f5e")
_STATUS_COLOURS = {
    Status.PASSED.value: _GOOD,
    **dict(zip((s.value for s in Status if s is not Status.PASSED), _FAILED, strict=True)),
    "not judged": _PLAIN,
}


def draw_course(
    points: Sequence[CurvePoint], compared: Sequence[Level], eager_us: float, *, speedup: bool
) -> None:
    """Best time, or speedup over eager PyTorch, by generation, with the floor and the baselines as lines."""
    unit = "speedup over eager PyTorch" if speedup else "µs"

    def shown(us: float) -> float:
        return eager_us / us if speedup else us

    line = _data(
        {"generation": p.generation, "value": shown(p.best_so_far_us), "what": "best so far"}
        for p in points if p.best_so_far_us is not None
    )  # fmt: skip
    dots = _data(
        {"generation": p.generation, "value": shown(p.best_us), "what": "best of the generation"}
        for p in points if p.best_us is not None
    )  # fmt: skip
    rules = _data({"value": shown(one.us), "what": one.name} for one in compared)
    names = ["best so far", "best of the generation", *(one.name for one in compared)]
    colour = alt.Color(
        "what:N", title=None, sort=None,
        scale=alt.Scale(domain=names, range=[_BEST, _OTHER, *_LEVELS[-len(compared):]]),
        legend=alt.Legend(orient="top", columns=3, labelLimit=300),
    )  # fmt: skip
    y = alt.Y("value:Q", title=unit, scale=alt.Scale(zero=True))
    tips = [alt.Tooltip("what:N", title=" "), alt.Tooltip("value:Q", title=unit, format=".4g")]
    x = _generation()
    chart = alt.layer(
        alt.Chart(rules).mark_rule(strokeDash=[6, 4], strokeWidth=2).encode(y=y, color=colour, tooltip=tips),
        alt.Chart(dots)
        .mark_circle(size=36, opacity=0.8)
        .encode(x=x, y=y, color=colour, tooltip=[*tips, "generation:Q"]),
        alt.Chart(line)
        .mark_line(interpolate="step-after", strokeWidth=2.5, point=len(points) == 1)
        .encode(x=x, y=y, color=colour, tooltip=[*tips, "generation:Q"]),
    )
    _draw(chart, "course")


def draw_fitness(points: Sequence[CurvePoint]) -> None:
    """The best and the mean fitness of each generation."""
    rows = [
        {"generation": p.generation, "fitness": value, "what": what}
        for p in points
        for what, value in (("best", p.best_fitness), ("mean", p.mean_fitness))
        if value is not None
    ]
    chart = (
        alt.Chart(_data(rows))
        .mark_line(strokeWidth=2, point=len(points) < 30)
        .encode(
            x=_generation(),
            y=alt.Y("fitness:Q", title="fitness", scale=alt.Scale(zero=False)),
            color=alt.Color(
                "what:N", title=None, scale=alt.Scale(domain=["best", "mean"], range=[_BEST, _OTHER]),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=["what:N", alt.Tooltip("fitness:Q", format=".3f"), "generation:Q"],
        )
    )  # fmt: skip
    _draw(chart, "fitness")


def draw_population(lines: Sequence[GenerationLine]) -> None:
    """What became of each generation's candidates."""
    rows = [
        {"generation": line.generation, "candidates": count, "what": name.replace("_", " ")}
        for line in lines
        for name, count in (
            *((status.value, count) for status, count in line.by_status.items()),
            ("not judged", line.candidates - line.judged),
        )
        if count
    ]
    seen = {str(row["what"]) for row in rows}
    colours = {name.replace("_", " "): colour for name, colour in _STATUS_COLOURS.items()}
    names = [name for name in colours if name in seen]
    many = len(lines) > 60
    mark = alt.Chart(_data(rows))
    drawn = mark.mark_area(interpolate="step-after", line=False) if many else mark.mark_bar()
    chart = drawn.encode(
        x=_generation(),
        y=alt.Y("candidates:Q", title="candidates", stack="zero"),
        color=alt.Color(
            "what:N", title=None, sort=names,
            scale=alt.Scale(domain=names, range=[colours[name] for name in names]),
            legend=alt.Legend(orient="top", columns=4),
        ),
        tooltip=["what:N", "candidates:Q", "generation:Q"],
    )  # fmt: skip
    _draw(chart, "population")


def draw_islands(lines: Sequence[IslandLine]) -> None:
    """The best time of each island, and how many of its candidates passed."""
    rows = _data(
        {
            "island": line.island + 1,
            "best": line.best_us,
            "said": f"{line.passed:,} of {line.candidates:,} passed",
        }
        for line in lines
    )
    base = alt.Chart(rows).encode(
        y=alt.Y("island:O", title="island"),
        tooltip=[
            "island:O",
            alt.Tooltip("best:Q", title="best, µs", format=".4g"),
            alt.Tooltip("said:N", title=" "),
        ],
    )
    bars = base.mark_bar(color=_BEST).encode(x=alt.X("best:Q", title="best, µs"))
    said = base.mark_text(align="left", baseline="middle", dx=6, color="white").encode(
        x=alt.value(0), text="said:N"
    )
    _draw(bars + said, "islands")


def _generation() -> alt.X:
    return alt.X("generation:Q", title="generation", axis=alt.Axis(tickMinStep=1, format="d"))


def _data(rows: Iterable[object]) -> alt.Data:
    return alt.Data(values=list(rows))  # type: ignore[no-untyped-call]


def _draw(chart: alt.Chart | alt.LayerChart | alt.FacetChart, key: str) -> None:
    st.altair_chart(chart.properties(height=_HEIGHT), key=f"chart {key}")
