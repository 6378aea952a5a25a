"""What every chart shares: colours that read on light and on dark, and rows as a chart takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt

GRAY = "#808495"
GREEN, RED, PALE = "#2e9e6b", "#d9534f", "#9aa0a6"
OWN, LIBRARY = "#e4572e", "#4c78a8"
"""A Program's own kernels, and calls of the library."""


def inline(rows: Sequence[Mapping[str, object]]) -> alt.Data:
    """Rows that travel with the chart."""
    return alt.Data(values=[dict(row) for row in rows])  # type: ignore[no-untyped-call]


def own_or_library() -> alt.Color:
    """Colour by the field `kind`."""
    scale = alt.Scale(domain=["own kernel", "library call"], range=[OWN, LIBRARY])
    return alt.Color("kind:N", scale=scale, legend=alt.Legend(title=None, orient="top"))
