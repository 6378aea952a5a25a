"""A launch plan as tables: steps, buffers, tunables, and the rest in words."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from memory.records import KernelStep, Program, ScalarArgument, Step


def draw_plan(program: Program) -> None:
    """Draw all of a plan but the source."""
    st.markdown("**Steps of every call**")
    if program.replay:
        st.caption("Captured once as a CUDA graph and replayed at every call.")
    _draw_steps(program.steps)
    if program.prepare:
        st.markdown("**Prepared once per set of weights**")
        _draw_steps(program.prepare)
    left, right = st.columns(2)
    with left:
        st.markdown("**Tunables**")
        rows = [
            {"name": t.name, "value": t.value, "choices": ", ".join(map(str, t.choices))}
            for t in program.tunables
        ]
        _table(rows, "none")
        st.markdown("**Sizes compiled in**")
        _table([{"name": name, "expression": text} for name, text in program.dims.items()], "none")
    with right:
        st.markdown("**Buffers**")
        buffers = [
            {
                "name": b.name,
                "shape": " × ".join(b.shape),
                "dtype": b.dtype.value,
                "layout": b.layout,
                "zeroed": "yes" if b.zero else "",
            }
            for b in program.buffers
        ]
        _table(buffers, "none")
        st.markdown("**Results**")
        st.text(", ".join(program.outputs))
        for target, buffer in program.updates.items():
            st.text(f"{target} is updated from {buffer}")


def _draw_steps(steps: Sequence[Step]) -> None:
    kernels = [(n, step) for n, step in enumerate(steps, 1) if isinstance(step, KernelStep)]
    calls = [(n, step) for n, step in enumerate(steps, 1) if not isinstance(step, KernelStep)]
    if kernels:
        _table(
            [
                {
                    "step": number,
                    "kernel": step.entry,
                    "grid": _three(step.grid),
                    "block": _three(step.block),
                    "dynamic shared": step.shared_bytes,
                    "arguments": ", ".join(_argument(argument) for argument in step.args),
                }
                for number, step in kernels
            ],
            "none",
        )
    if calls:
        _table(
            [
                {
                    "step": number,
                    "library call": step.op,
                    "arguments": ", ".join(
                        [*map(str, step.args), *(f"{name}={value}" for name, value in step.kwargs.items())]
                    ),
                    "results": ", ".join(name or "(unused)" for name in step.outputs),
                }
                for number, step in calls
            ],
            "none",
        )


def _three(sizes: Sequence[str]) -> str:
    """Trailing ones left out."""
    kept = list(sizes)
    while len(kept) > 1 and kept[-1] == "1":
        kept.pop()
    return ", ".join(kept)


def _argument(argument: str | ScalarArgument) -> str:
    return argument if isinstance(argument, str) else f"({argument.ctype}) {argument.value}"


def _table(rows: list[dict[str, object]] | list[dict[str, str]], absent: str) -> None:
    if rows:
        st.dataframe(rows, hide_index=True, width="stretch")
    else:
        st.caption(absent)
