"""Plots of a run: its course by generation, its population, its islands. They read in light and dark themes.

Rows travel beside the specification and not in it: altair would hold each of them against vega-lite's schema, which
takes a second for a long run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import streamlit as st

from graph.curves import CurvePoint, Level
from memory.records import Status
from memory.store_views import GenerationLine, IslandLine

_HEIGHT, _TALL = 320, 420
"""Pixels; the taller plot has the longer legend."""
_BEST, _OTHER, _GOOD, _PLAIN = "#3b82f6", "#94a3b8", "#16a34a", "#9ca3af"
_LEVELS = ("#f59e0b", "#a855f7", "#ec4899", "#16a34a")
_FAILED = ("#14b8a6", "#f97316", "#eab308", "#a855f7", "#ec4899", "#0ea5e9", "#78716c", "#ef4444", "#f43f5e")
_STATUS_COLOURS = {
    Status.PASSED.value: _GOOD,
    **dict(zip((s.value for s in Status if s is not Status.PASSED), _FAILED, strict=True)),
    "not judged": _PLAIN,
}


def draw_course(
    points: Sequence[CurvePoint], compared: Sequence[Level], eager_us: float, *, speedup: bool
) -> None:
    """Best time, or speedup over eager PyTorch, by generation, with the floor and the baselines as lines."""
    unit = "speedup over eager" if speedup else "µs"

    def shown(us: float) -> float:
        return eager_us / us if speedup else us

    line = [
        {"generation": p.generation, "value": shown(p.best_so_far_us), "what": "best so far"}
        for p in points if p.best_so_far_us is not None
    ]  # fmt: skip
    dots = [
        {"generation": p.generation, "value": shown(p.best_us), "what": "generation's best"}
        for p in points if p.best_us is not None
    ]  # fmt: skip
    rules = [{"value": shown(one.us), "what": one.name} for one in compared]
    names = ["best so far", "generation's best", *(one.name for one in compared)]
    colour = alt.Color(
        "what:N", title=None, sort=None,
        scale=alt.Scale(domain=names, range=[_BEST, _OTHER, *_LEVELS[-len(compared):]]),
        legend=alt.Legend(orient="bottom", columns=1, labelLimit=300),
    )  # fmt: skip
    y = alt.Y("value:Q", title=unit, scale=alt.Scale(zero=True))
    tips = [alt.Tooltip("what:N", title=" "), alt.Tooltip("value:Q", title=unit, format=".4g")]
    x = _generation()
    chart = alt.layer(
        _chart("rules").mark_rule(strokeDash=[6, 4], strokeWidth=2).encode(y=y, color=colour, tooltip=tips),
        _chart("dots")
        .mark_circle(size=36, opacity=0.8)
        .encode(x=x, y=y, color=colour, tooltip=[*tips, "generation:Q"]),
        _chart("line")
        .mark_line(interpolate="step-after", strokeWidth=2.5, point=len(points) == 1)
        .encode(x=x, y=y, color=colour, tooltip=[*tips, "generation:Q"]),
    )
    _draw(chart, "course", line=line, dots=dots, rules=rules)


def draw_fitness(points: Sequence[CurvePoint]) -> None:
    """The best and the mean fitness of each generation."""
    rows = [
        {"generation": p.generation, "fitness": value, "what": what}
        for p in points
        for what, value in (("best", p.best_fitness), ("mean", p.mean_fitness))
        if value is not None
    ]
    chart = (
        _chart("rows")
        .mark_line(strokeWidth=2, point=len(points) < 30)
        .encode(
            x=_generation(),
            y=alt.Y("fitness:Q", title="fitness", scale=alt.Scale(zero=False)),
            color=alt.Color(
                "what:N", title=None, scale=alt.Scale(domain=["best", "mean"], range=[_BEST, _OTHER]),
                legend=alt.Legend(orient="bottom"),
            ),
            tooltip=["what:N", alt.Tooltip("fitness:Q", format=".3f"), "generation:Q"],
        )
    )  # fmt: skip
    _draw(chart, "fitness", rows=rows)


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
    mark = _chart("rows")
    drawn = mark.mark_area(interpolate="step-after", line=False) if many else mark.mark_bar()
    chart = drawn.encode(
        x=_generation() if many else _each_generation(),
        y=alt.Y("candidates:Q", title="candidates", stack="zero"),
        color=alt.Color(
            "what:N", title=None, sort=names,
            scale=alt.Scale(domain=names, range=[colours[name] for name in names]),
            legend=alt.Legend(orient="bottom", columns=3),
        ),
        tooltip=["what:N", "candidates:Q", "generation:Q"],
    )  # fmt: skip
    _draw(chart, "population", rows=rows)


def draw_islands(lines: Sequence[IslandLine]) -> None:
    """The best time of each island, and how many of its candidates passed."""
    rows = [
        {
            "island": line.island,
            "best": line.best_us,
            "said": f"{line.passed:,} of {line.candidates:,} passed",
        }
        for line in lines
    ]
    base = _chart("rows").encode(
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
    _draw(bars + said, "islands", rows=rows)


def _generation() -> alt.X:
    return alt.X("generation:Q", title="generation", axis=alt.Axis(tickMinStep=1, format="d"))


def _each_generation() -> alt.X:
    """A place for each, so that bars are as wide as there is room."""
    return alt.X("generation:O", title="generation", axis=alt.Axis(labelAngle=0, labelOverlap=True))


def _chart(rows: str) -> alt.Chart:
    """Of the rows that `_draw` is given by this name."""
    return alt.Chart(alt.NamedData(name=rows))


def _draw(
    chart: alt.Chart | alt.LayerChart | alt.FacetChart, key: str, **rows: Sequence[Mapping[str, object]]
) -> None:
    spec = chart.properties(height=_TALL if key == "course" else _HEIGHT).to_dict(validate=False)
    st.vega_lite_chart(
        {**spec, "datasets": {name: [*found] for name, found in rows.items()}}, key=f"chart {key}"
    )
