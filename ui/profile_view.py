"""Where a candidate's time goes: bars for each step, what its warps wait for, and what ptxas gave its kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import altair as alt
import streamlit as st

from memory.records import Profile, StepProfile
from ui.charts import inline, own_or_library
from ui.words import as_sentence

_COLUMNS: tuple[tuple[str, Callable[[StepProfile], object]], ...] = (
    ("step", lambda s: s.name),
    ("µs", lambda s: round(s.us, 3)),
    ("limited by", lambda s: s.limiter),
    ("registers", lambda s: s.registers),
    ("shared bytes", lambda s: s.shared_bytes),
    ("spilled bytes", lambda s: s.spill_bytes),
    ("occupancy", lambda s: _share(s.occupancy)),
    ("achieved occupancy", lambda s: _share(s.achieved_occupancy)),
    ("of DRAM bandwidth", lambda s: _share(s.dram_fraction)),
    ("of arithmetic rate", lambda s: _share(s.compute_fraction)),
    ("tensor cores busy", lambda s: _share(s.tensor_fraction)),
    ("of the roofline", lambda s: _share(s.roofline_fraction)),
    ("DRAM GB/s", lambda s: round(s.dram_gbps, 1) if s.dram_gbps is not None else None),
    ("L1 hits", lambda s: _share(s.l1_hit_rate)),
    ("L2 hits", lambda s: _share(s.l2_hit_rate)),
    ("load sectors a request", lambda s: _number(s.load_sectors_per_request)),
    ("store sectors a request", lambda s: _number(s.store_sectors_per_request)),
    ("bank conflicts", lambda s: _number(s.bank_conflicts)),
    ("warps wait for", lambda s: s.stall),
    ("share of their time", lambda s: _share(s.stall_share)),
    ("numbers from", lambda s: "counters" if s.counted else "model or shapes"),
)


def draw_profile(profile: Profile, *, source: str) -> None:
    """Draw it. source: whether times were measured or modelled."""
    st.text(as_sentence(f"{profile.bottleneck}: {profile.explanation}"))
    st.markdown(f"**Time by step ({source})**")
    _bars(profile.steps)
    mixes = [step for step in profile.steps if step.instruction_mix]
    if mixes:
        st.markdown("**Instructions by kind (counted)**")
        _mix(mixes)
    st.markdown("**Resources and counters**")
    rows = [{name: read(step) for name, read in _COLUMNS} for step in profile.steps]
    known = [name for name, _ in _COLUMNS if any(row[name] is not None for row in rows)]
    # Upright: a plan has few steps and many numbers.
    st.dataframe(
        [{"": name} | {f"{i + 1}": _text(row[name]) for i, row in enumerate(rows)} for name in known],
        hide_index=True,
        width="stretch",
        height=38 + 35 * len(known),
    )
    if profile.counters_absent is not None:
        st.caption("No hardware counters:")
        st.text(as_sentence(profile.counters_absent))


def _bars(steps: Sequence[StepProfile]) -> None:
    values = [
        {
            "step": f"{number}. {step.name}",
            "us": step.us,
            "kind": "own kernel" if step.authored else "library call",
            "limiter": step.limiter,
        }
        for number, step in enumerate(steps, 1)
    ]
    chart = (
        alt.Chart(inline(values))
        .mark_bar(size=18)
        .encode(
            x=alt.X("us:Q", title="µs"),
            y=alt.Y("step:N", sort=None, title=None, axis=alt.Axis(labelLimit=260)),
            color=own_or_library(),
            tooltip=["step:N", alt.Tooltip("us:Q", title="µs", format=",.2f"), "kind:N", "limiter:N"],
        )
        .properties(height=170 + 30 * len(values))
    )
    st.altair_chart(chart, width="stretch")


def _mix(steps: Sequence[StepProfile]) -> None:
    values = [
        {"step": step.name, "kind": kind, "share": share}
        for step in steps
        for kind, share in step.instruction_mix.items()
    ]
    chart = (
        alt.Chart(inline(values))
        .mark_bar(size=18)
        .encode(
            x=alt.X("share:Q", title=None, axis=alt.Axis(format="%"), stack="normalize"),
            y=alt.Y("step:N", sort=None, title=None, axis=alt.Axis(labelLimit=260)),
            color=alt.Color("kind:N", legend=alt.Legend(title=None, orient="top")),
            tooltip=["step:N", "kind:N", alt.Tooltip("share:Q", format=".1%")],
        )
        .properties(height=170 + 30 * len(steps))
    )
    st.altair_chart(chart, width="stretch")


def _share(value: float | None) -> str | None:
    return f"{value:.0%}" if value is not None else None


def _number(value: float | None) -> str | None:
    return f"{value:,.1f}" if value is not None else None


def _text(value: object) -> str:
    return "" if value is None else str(value)
