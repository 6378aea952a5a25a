"""A benchmark's results as Markdown and as an SVG plot. Pure: text in, text out.

Not here: the statistics (graph.bench_statistics). Invariants: measured and modelled times never share a table, a
mean or a curve; losses and failures are listed, not only counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from graph.bench_records import BenchEntry, BenchResults, BenchStatus, TimeUs
from graph.bench_statistics import (
    Averages,
    Baseline,
    averages,
    count,
    delivered_speedup,
    fast_p,
    losses,
    own_speedup,
)

THRESHOLDS = (0.5, 0.8, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
"""Values of p in the report's table."""
_SOURCES = {
    "measured": "Times are **measured** on a GPU: medians with a confidence interval.",
    "modelled": "Times are **modelled** by the simulator, not measured on a GPU: they rank programs and carry the"
    " model's error. They say nothing certain about speed.",
}
_BASELINES: dict[Baseline, str] = {
    "eager": "eager PyTorch",
    "compile": "torch.compile (default)",
    "compile_best": "torch.compile (best mode)",
}
_COLOURS = ("#1b6ca8", "#c2571a", "#2e7d32", "#7b3fa0", "#8a6d00", "#a3195b")


def render_markdown(results: BenchResults, *, plot: str | None = None) -> str:
    """The report. plot: address of the SVG, to be shown under the summary."""
    lines = ["# Benchmark", "", f"{_problems(len(results.entries))}.", ""]
    if plot:
        lines += [f"![share of problems above each speedup]({plot})", ""]
    for source in _sources(results):
        lines += _section([e for e in results.entries if e.time_source == source], source)
    lines += ["## How it was run", ""]
    lines += [f"- {name} {value}" for name, value in sorted(results.versions.items())]
    shown = ", ".join(f"{name} {value}" for name, value in sorted(results.settings.items()))
    lines += [f"- settings: {shown or 'not recorded'}", ""]
    return "\n".join(lines)


def render_summary(results: BenchResults) -> str:
    """A few lines for a terminal: how the problems ended, and the mean speedup by kind of time."""
    lines = []
    for source in _sources(results):
        entries = [entry for entry in results.entries if entry.time_source == source]
        counts, found = count(entries), averages([delivered_speedup(entry) for entry in entries])
        lines.append(
            f"{_problems(counts.total)} ({source}): {counts.improved} improved, {counts.not_improved} not improved,"
            f" {counts.failed} failed" + (f", {counts.running} not finished" if counts.running else "")
        )
        if found is not None:
            lines.append(
                f"  geometric mean {found.geometric_mean:.2f}×, median {found.median:.2f}× over eager"
                f" (PyTorch kept where nothing is better); our best program is slower on"
                f" {len(losses(entries))}"
            )
    return "\n".join(lines) or "no problems"


def _problems(number: int) -> str:
    return f"{number} problem{'' if number == 1 else 's'}"


def _sources(results: BenchResults) -> list[str]:
    """Measured first."""
    found = {entry.time_source for entry in results.entries}
    return [source for source in _SOURCES if source in found]


def _section(entries: Sequence[BenchEntry], source: str) -> list[str]:
    counts = count(entries)
    machines = sorted({f"{entry.device} on {entry.machine}" for entry in entries})
    lines = [f"## {source.capitalize()}", "", _SOURCES[source], ""]
    lines += [f"Machine: {machine}." for machine in machines]
    lines += [
        "",
        f"{counts.improved} improved, {counts.not_improved} not improved (PyTorch is kept), {counts.failed} failed"
        + (f", {counts.running} not finished" if counts.running else "")
        + f", of {counts.total}.",
        "",
    ]
    lines += _averages_table(entries, source)
    lines += _fast_p_table(entries, source)
    for baseline, title in _BASELINES.items():
        lines += _losses_list(entries, baseline, title)
    lines += _failures(entries)
    lines += _problems_table(entries, source)
    return lines


def _averages_table(entries: Sequence[BenchEntry], source: str) -> list[str]:
    rows: list[tuple[str, Averages | None]] = [
        (
            "over eager, PyTorch kept where nothing is better",
            averages([delivered_speedup(e) for e in entries]),
        )
    ]
    for baseline, title in _BASELINES.items():
        found = averages([own_speedup(e, baseline) for e in entries])
        rows.append((f"our best program over {title}, losses included", found))
    lines = [f"| speedup ({source}) | problems | geometric mean | median |", "|---|---:|---:|---:|"]
    lines += [
        f"| {title} | {found.problems} | {found.geometric_mean:.2f}× | {found.median:.2f}× |"
        for title, found in rows
        if found is not None
    ]
    note = (
        "A program that is faster without being called improved counts as 1; failed problems are in no mean."
    )
    return [*lines, "", note, ""]


def _fast_p_table(entries: Sequence[BenchEntry], source: str) -> list[str]:
    curves = _curves(entries)
    head = "| p | " + " | ".join(f"faster than p × {_BASELINES[baseline]}" for baseline, _ in curves) + " |"
    lines = [f"### fast_p ({source})", ""]
    lines += ["Share of all problems, failed ones included, with a speedup above p.", ""]
    lines += [head, "|---:|" + "---:|" * len(curves)]
    for threshold in THRESHOLDS:
        cells = " | ".join(f"{fast_p(speedups, threshold):.0%}" for _, speedups in curves)
        lines.append(f"| {threshold:g} | {cells} |")
    return [*lines, ""]


def _curves(entries: Sequence[BenchEntry]) -> list[tuple[Baseline, list[float | None]]]:
    """Speedups over each baseline that was timed; eager always."""
    found = [(baseline, [own_speedup(e, baseline) for e in entries]) for baseline in _BASELINES]
    return [(b, s) for b, s in found if b == "eager" or any(value is not None for value in s)]


def _losses_list(entries: Sequence[BenchEntry], baseline: Baseline, title: str) -> list[str]:
    found = losses(entries, baseline)
    if not found and (baseline != "eager" or not entries):
        return []
    lines = [f"### Slower than {title}: {len(found)}", ""]
    lines += [f"- {_text(entry.name)}: {value:.3f}×" for entry, value in found] or ["None."]
    return [*lines, ""]


def _failures(entries: Sequence[BenchEntry]) -> list[str]:
    found = [entry for entry in entries if entry.status is BenchStatus.FAILED]
    if not found:
        return []
    lines = [f"### Failed: {len(found)}", ""]
    return [*lines, *(f"- {_text(e.name)}: {_text(e.message or 'no message')}" for e in found), ""]


def _problems_table(entries: Sequence[BenchEntry], source: str) -> list[str]:
    lines = [
        f"### Problems ({source}, µs)",
        "",
        "| problem | outcome | eager | compile | compile best | ours [interval] | speedup | floor | of floor "
        "| own kernels | evaluations | s |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [f"| {' | '.join(_cells(entry))} |" for entry in entries]
    note = "Speedup is eager over ours as it came out; own kernels is their share of the device time."
    return [*lines, "", note, ""]


def _cells(entry: BenchEntry) -> list[str]:
    ours = entry.ours
    return [
        _text(entry.name),
        entry.status.value.replace("_", " "),
        _median(entry.eager),
        _median(entry.compile),
        _median(entry.compile_best),
        f"{ours.median_us:,.1f} [{ours.low_us:,.1f}, {ours.high_us:,.1f}]" if ours else "",
        f"{entry.speedup:.2f}×" if entry.speedup is not None else "",
        f"{entry.floor_us:,.1f}" if entry.floor_us is not None else "",
        f"{entry.floor_fraction:.0%}" if entry.floor_fraction is not None else "",
        f"{entry.authored_share:.0%}" if entry.authored_share is not None else "",
        str(entry.evaluations),
        f"{entry.seconds:.0f}",
    ]


def _median(time: TimeUs | None) -> str:
    return f"{time.median_us:,.1f}" if time else ""


def _text(text: str) -> str:
    """Text that can neither end a table's cell nor a line, nor be taken for markup."""
    return escape(" ".join(text.split()), quote=False).replace("|", "\\|").replace("`", "'")


# --- the plot -------------------------------------------------------------------------------------------------

_WIDTH, _HEIGHT = 680, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 20, 50, 60
_TICKS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)


def render_plot(results: BenchResults) -> str:
    """fast_p as an SVG: p on a logarithmic axis, the share of problems with a speedup above p."""
    curves = [
        (f"over {_BASELINES[baseline]} ({source})", speedups)
        for source in _sources(results)
        for baseline, speedups in _curves([e for e in results.entries if e.time_source == source])
    ]
    known = [value for _, speedups in curves for value in speedups if value is not None]
    low, high = min([0.5, *known]) / 1.1, max([2.0, *known]) * 1.1
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif"'
        ' font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="24" font-size="15">{escape(_plot_title(results))}</text>',
        *_axes(low, high),
    ]
    for position, (label, speedups) in enumerate(curves):
        parts += _curve(label, speedups, (low, high), position)
    return "\n".join([*parts, "</svg>", ""])


def _plot_title(results: BenchResults) -> str:
    kinds = " and ".join(_sources(results)) or "no"
    return f"Share of {_problems(len(results.entries))} with a speedup above p ({kinds} times)"


def _x(value: float, low: float, high: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * math.log(value / low) / math.log(high / low)


def _y(share: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * share


def _axes(low: float, high: float) -> list[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _y(share)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>')
    for tick in (t for t in _TICKS if low <= t <= high):
        x, strong = _x(tick, low, high), tick == 1.0
        colour = "#888" if strong else "#eee"
        parts.append(f'<path d="M{x:.1f} {_TOP}V{bottom}" stroke="{colour}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{tick:g}×</text>')
    middle = (_LEFT + right) / 2
    parts.append(f'<text x="{middle:.0f}" y="{_HEIGHT - 12}" text-anchor="middle">speedup p</text>')
    return parts


def _curve(
    label: str, speedups: Sequence[float | None], span: tuple[float, float], position: int
) -> list[str]:
    """A falling staircase and its entry in the legend."""
    low, high = span
    colour = _COLOURS[position % len(_COLOURS)]
    path = f"M{_LEFT} {_y(fast_p(speedups, low)):.1f}"
    for value in sorted({value for value in speedups if value is not None}):
        path += f"H{_x(value, low, high):.1f}V{_y(fast_p(speedups, value)):.1f}"
    path += f"H{_WIDTH - _RIGHT}"
    y = _TOP + 14 + 18 * position
    return [
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        f'<text x="{_WIDTH - _RIGHT - 6}" y="{y}" text-anchor="end" fill="{colour}">{escape(label)}</text>',
    ]
