"""What Nsight Compute prints with `--csv`, as numbers in base units. Pure.

Two layouts: the raw page (one row a launch, one column a metric, units in a row of their own) and the details page
(one row a launch and metric). Lines before the header are the tool's own talk or the program's output.
Invariant: a cell that is no number (`n/a`, empty, `nan`) or has a unit not understood is absent, never zero.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
"""Decimal: a Kbyte is 1,000 bytes."""
_SECONDS = {
    "second": 1.0, "msecond": 1e-3, "usecond": 1e-6, "nsecond": 1e-9,
    "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9,
}  # fmt: skip
_HERTZ = {"hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9, "thz": 1e12}
_COUNT = re.compile(r"([KMGT]?)([a-z_]+)")
_FIRST_COLUMN = "ID"
_KERNEL_COLUMN = "Kernel Name"


@dataclass(frozen=True)
class LaunchRow:
    """One profiled launch."""

    kernel: str
    """Function name without parameters."""
    values: Mapping[str, float]
    """By metric: counts and bytes as they are, times in seconds, rates a second, percentages as printed (0 to 100)."""


def parse_csv(text: str) -> list[LaunchRow]:
    """The launches in the order they ran; empty where the text holds no table."""
    lines = text.splitlines()
    start = next(
        (i for i, line in enumerate(lines) if line.startswith((f'"{_FIRST_COLUMN}",', f"{_FIRST_COLUMN},"))),
        None,
    )
    if start is None:
        return []
    header, *body = csv.reader(_table(lines[start:]))
    if _KERNEL_COLUMN not in header:
        return []
    rows = [row for row in body if len(row) == len(header)]
    return _by_metric(header, rows) if "Metric Name" in header else _by_launch(header, rows)


def unit_scale(unit: str) -> float | None:
    """Factor from a printed unit to the base unit (bytes, seconds, hertz, counts); None where it is not understood."""
    unit = unit.strip()
    if unit in ("", "%", "ratio", "nan"):
        return 1.0
    numerator, slash, denominator = unit.partition("/")
    over = unit_scale(denominator) if slash else 1.0
    scale = _simple_scale(numerator)
    return None if scale is None or not over else scale / over


def kernel_name(printed: str) -> str:
    """`reduce` of `void reduce<4, float>(const float *)`: return type, template arguments and parameters cut off."""
    name = printed.replace("(anonymous namespace)::", "").strip()
    depth, kept = 0, list[str]()
    for character in name:
        if character == "(" and depth == 0:
            break
        if character == ">":
            depth -= 1
        elif character == "<":
            depth += 1
        elif depth == 0:
            kept.append(character)
    return "".join(kept).strip().rpartition(" ")[2] or name


def _simple_scale(unit: str) -> float | None:
    if unit in _SECONDS:
        return _SECONDS[unit]
    if unit.lower() in _HERTZ:
        return _HERTZ[unit.lower()]
    match = _COUNT.fullmatch(unit)
    return _PREFIXES[match[1]] if match else None


def _table(lines: Iterable[str]) -> Iterable[str]:
    """The table's lines: whatever the tool says in between begins with `==`."""
    return (line for line in lines if line and not line.startswith("=="))


def _by_launch(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[LaunchRow]:
    """The raw page. Its first row holds the units and no ID."""
    units = rows[0] if rows and not rows[0][0] else [""] * len(header)
    kernel = header.index(_KERNEL_COLUMN)
    metrics = [i for i, name in enumerate(header) if "__" in name]
    return [
        LaunchRow(
            kernel_name(row[kernel]),
            {header[i]: number for i in metrics if (number := _number(row[i], units[i])) is not None},
        )
        for row in rows
        if row[0]
    ]


def _by_metric(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[LaunchRow]:
    """The details page."""
    places = [
        header.index(n) for n in (_FIRST_COLUMN, _KERNEL_COLUMN, "Metric Name", "Metric Unit", "Metric Value")
    ]
    names: dict[str, str] = {}
    values: dict[str, dict[str, float]] = {}
    for row in rows:
        launch, kernel, metric, unit, value = (row[place] for place in places)
        if not launch:
            continue
        names[launch] = kernel_name(kernel)
        found = values.setdefault(launch, {})
        number = _number(value, unit)
        if number is not None:
            found[metric] = number
    return [LaunchRow(names[launch], found) for launch, found in values.items()]


def _number(cell: str, unit: str) -> float | None:
    """A cell in base units; commas separate thousands."""
    scale = unit_scale(unit)
    try:
        number = float(cell.replace(",", ""))
    except ValueError:
        return None
    return number * scale if scale is not None and math.isfinite(number) else None
