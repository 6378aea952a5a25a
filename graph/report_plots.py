"""The report's drawings: SVG by hand, coloured by the page's own style so that it reads in the light and in the dark.

Pure. Invariant: every text in a drawing is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_WIDTH = 720
_LEFT, _RIGHT = 150, 90
_BAR, _GAP = 22, 14


def times_plot(bars: Sequence[tuple[str, float, float, float, bool]], floor_us: float, source: str) -> str:
    """Bars of (name, median, low, high, ours?) in µs with their intervals, and the floor as a line."""
    top, height = 34, 34 + len(bars) * (_BAR + _GAP) + 34
    scale = (_WIDTH - _LEFT - _RIGHT) / max(high for _, _, _, high, _ in bars)
    parts = [_open(height, f"Time of one forward in µs ({source}), shorter is better")]
    for position, (name, median, low, high, ours) in enumerate(bars):
        y = top + position * (_BAR + _GAP)
        middle, left, right = y + _BAR / 2, _LEFT + low * scale, _LEFT + high * scale
        kind = "ours" if ours else "other"
        parts += [
            f'<text x="{_LEFT - 10}" y="{middle + 4:.1f}" text-anchor="end">{escape(name)}</text>',
            f'<rect class="{kind}" x="{_LEFT}" y="{y}" width="{median * scale:.1f}" height="{_BAR}"/>',
            f'<path class="whisker" d="M{left:.1f} {middle:.1f}H{right:.1f}M{left:.1f} {middle - 5:.1f}v10'
            f'M{right:.1f} {middle - 5:.1f}v10"/>',
            f'<text x="{right + 8:.1f}" y="{middle + 4:.1f}">{median:.3g} µs</text>',
        ]
    x, bottom = _LEFT + floor_us * scale, height - 26
    parts += [
        f'<path class="floor" stroke-dasharray="4 3" d="M{x:.1f} {top - 6}V{bottom}"/>',
        f'<text class="soft" x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">floor {floor_us:.3g} µs</text>',
        "</svg>",
    ]
    return "".join(parts)


def search_plot(
    best: Sequence[tuple[int, float | None]], eager_us: float, floor_us: float, source: str
) -> str:
    """The best time of each generation, the best so far as a line, eager and the floor as levels; µs."""
    height, top, bottom, left = 300, 40, 250, 60
    right = _WIDTH - _RIGHT
    known = [us for _, us in best if us is not None]
    highest = max([eager_us, *known]) * 1.08
    last = max([1, *(generation for generation, _ in best)])

    def x(generation: float) -> float:
        return left + (right - left) * generation / last

    def y(us: float) -> float:
        return bottom - (bottom - top) * us / highest

    parts = [_open(height, f"Best time of each generation in µs ({source})")]
    parts.append(f'<path class="axis" d="M{left} {top}V{bottom}H{right}"/>')
    for name, level, kind in (("eager", eager_us, "other"), ("floor", floor_us, "floor")):
        parts.append(f'<path class="{kind}" stroke-dasharray="4 3" d="M{left} {y(level):.1f}H{right}"/>')
        parts.append(f'<text x="{right + 6}" y="{y(level) + 4:.1f}">{name} {level:.3g}</text>')
    parts.append(f'<text class="soft" x="{left - 8}" y="{bottom + 4}" text-anchor="end">0</text>')
    step = max(1, -(-(last + 1) // 12))
    for generation in range(0, last + 1, step):
        parts.append(
            f'<text class="soft" x="{x(generation):.1f}" y="{bottom + 18}" text-anchor="middle">{generation}</text>'
        )
    parts.append(
        f'<text class="soft" x="{(left + right) / 2:.0f}" y="{bottom + 38}" text-anchor="middle">generation</text>'
    )
    path, so_far = "", float("inf")
    for generation, us in best:
        if us is None:
            continue
        parts.append(f'<circle class="ours" cx="{x(generation):.1f}" cy="{y(us):.1f}" r="3"/>')
        so_far = min(so_far, us)
        path += f"{'H' if path else 'M'}{x(generation):.1f}{'V' if path else ' '}{y(so_far):.1f}"
    if path:
        parts.append(f'<path class="ours line" style="fill:none" d="{path}H{right}"/>')
    return "".join([*parts, "</svg>"])


def _open(height: int, title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img"'
        f' aria-label="{escape(title)}"><text x="0" y="16">{escape(title)}</text>'
    )
