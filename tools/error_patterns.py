"""What the wrong elements of an output have in common: where they lie, how their values relate to the expected.

Here: words for the author of a kernel, from flags and values; pure. Not here: which elements are wrong
(tools.correctness, tools.tensor_compare). Invariants: every clause is true of all the wrong elements; a pattern is
named only where so many elements share it that chance does not explain it; a clause stays short.
"""

from __future__ import annotations

from math import lgamma, log

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

CHANCE = 1e-4
"""A pattern that random positions would show more often than this is not named."""
LISTED = 4
"""Up to so many positions are named one by one."""
WARP = 32
RELATED = 3
"""A factor or an offset is named from so many elements on."""
ROUNDING = 5e-3
"""Errors up to this are called small."""
FILLING = 0x7FFFF
"""Sign, exponent and the highest seven bits of the fraction, which every floating type has, of a float64 made from a
value whose bytes are all 0xFF."""
FILLING_SHIFT = 45
SAME = 1e-3
"""Factors and offsets within this, relative, are called one."""


def describe_pattern(wrong: Flags, got: Floats, expected: Floats) -> str:
    """One line: how many elements are wrong, where they lie, and what their values have in common.

    wrong: of the output's shape. got, expected: the values of wrong elements, all or an evenly spaced part of them.
    """
    count, total = int(wrong.sum()), wrong.size
    share = f"{count:,} of {total:,} elements {'is' if count == 1 else 'are'} wrong"
    where, what = describe_places(wrong), describe_values(got, expected)
    return share + (f": {where}" if where else "") + (f"; {what}" if what else "")


def describe_size(error: float | None) -> str:
    """What an error's size says by itself; empty for a large one. `error` is relative, None for no number."""
    if error is None or error > ROUNDING:
        return ""
    return "small errors: rounding, by a narrower type, a fast approximation or the order of a sum"


def describe_places(wrong: Flags) -> str:
    """Where the wrong elements lie; empty where they follow no pattern."""
    count, total = int(wrong.sum()), wrong.size
    if count == total:
        return "every element"
    flat = wrong.reshape(-1)
    where = np.flatnonzero(flat)
    first, last = int(where[0]), int(where[-1])
    if last - first + 1 == count:
        run = _run(first, last, total)
        if run:
            return run
    spaced, flat_share = _spaced(where, total, "flat index")
    placed, axis_share = _by_axis(wrong) if wrong.ndim > 1 else ("", 1.0)
    # Both are true where there are both; the narrower one says more.
    return placed if placed and axis_share <= flat_share else spaced


def _run(first: int, last: int, total: int) -> str:
    """A run of flat indices at an end, or in the middle; empty for a single element, whose index says it all."""
    if last == total - 1:
        return f"only the tail, from flat index {first:,}"
    if first == 0:
        return f"only the first {last + 1:,}, up to flat index {last:,}" if last else ""
    return f"only flat indices {first:,} to {last:,}" if last > first else ""


def _by_axis(wrong: Flags) -> tuple[str, float]:
    """Rows, columns or indices of a dimension that have all the wrong elements, and their share of the output."""
    rows = wrong.reshape(-1, wrong.shape[-1])
    row_wrong = np.asarray(rows.any(axis=1))
    if not row_wrong.all() and rows.shape[1] > 1 and bool(rows[row_wrong].all()):
        return f"whole rows, {_along(row_wrong, 'row')}", float(row_wrong.mean())
    count = int(wrong.sum())
    said, share = [], 1.0
    for axis in range(wrong.ndim):
        hit = np.asarray(wrong.any(axis=tuple(i for i in range(wrong.ndim) if i != axis)))
        if not hit.all() and _telling(count, int(hit.sum()), hit.size):
            said.append(_along(hit, _axis_name(axis, wrong.ndim)))
            share *= float(hit.mean())
    return ", ".join(said), share


def _axis_name(axis: int, rank: int) -> str:
    if axis == rank - 1:
        return "column"
    return "row" if rank == 2 else f"dim-{axis} index"


def _telling(count: int, hit: int, size: int) -> bool:
    """Whether `count` elements would fall into so few of an axis' indices by chance only rarely (union bound)."""
    if hit == size or hit > count:
        return False
    ways = lgamma(size + 1) - lgamma(hit + 1) - lgamma(size - hit + 1)
    return ways + count * log(hit / size) < log(CHANCE)


def _along(hit: Flags, name: str) -> str:
    """Which indices of one axis have wrong elements."""
    where, size = np.flatnonzero(hit), hit.size
    first, last, count = int(where[0]), int(where[-1]), where.size
    if count == 1:
        return f"only {name} {first:,} of {size:,}"
    if last - first + 1 == count:
        if last == size - 1:
            return f"only the last {count:,} of {size:,} {_plural(name)}, from {first:,}"
        if first == 0:
            return f"only the first {count:,} of {size:,} {_plural(name)}"
        return f"only {_plural(name)} {first:,} to {last:,} of {size:,}"
    spaced, _ = _spaced(where, size, name)
    if spaced:
        return spaced
    if count <= LISTED:
        return f"only {_plural(name)} {', '.join(f'{i:,}' for i in where)} of {size:,}"
    return f"{count:,} of {size:,} {_plural(name)}, {first:,} to {last:,}"


def _plural(name: str) -> str:
    return name.replace("index", "indices") if name.endswith("index") else f"{name}s"


def _spaced(where: NDArray[np.intp], size: int, name: str) -> tuple[str, float]:
    """Positions with one remainder, such as every 32nd, or with some lanes of a warp, and their share of all.

    Empty with a share of 1 where chance may explain it.
    """
    if where.size < 2:
        return "", 1.0
    step, first = int(np.gcd.reduce(np.diff(where))), int(where[0])
    first %= step
    places = len(range(first, size, step))
    # The first position is free; each other has by chance one place in `step`.
    if step > 1 and (where.size == places >= RELATED or (where.size - 1) * log(step) > -log(CHANCE)):
        some = "" if where.size == places else f" ({where.size:,} of {places:,} such)"
        return f"one {name} in {step:,}, from {first:,}{some}", 1 / step
    lanes = np.unique(where % WARP)
    if size >= 2 * WARP and _telling(where.size, lanes.size, WARP):
        run = int(lanes[-1] - lanes[0] + 1) == lanes.size
        shown = f"{lanes[0]} to {lanes[-1]}" if run else ", ".join(map(str, lanes))
        return f"only where {name} % {WARP} is {shown}", lanes.size / WARP
    return "", 1.0


def describe_values(got: Floats, expected: Floats) -> str:
    """What the wrong values have in common; empty where nothing."""
    return _special(got, expected) or _related(got, expected)


def _special(got: Floats, expected: Floats) -> str:
    """Values that are no numbers, on either side."""
    if bool(np.isnan(expected).all()):
        return "NaN is expected in all of them, and nowhere else is anything wrong: NaN gets lost"
    if bool(np.isinf(expected).all()):
        return "an infinity is expected in all of them, and nowhere else is anything wrong"
    if not np.isfinite(expected).any():
        return "NaN or an infinity is expected in all of them, and nowhere else is anything wrong"
    if bool(np.isnan(got).all()):
        return f"all of them NaN, {_nan_cause(got)}"
    if bool(np.isinf(got).all()):
        return "all of them infinite: an overflow or a division by zero"
    if not np.isfinite(got).any():
        return "all of them NaN or infinite: an overflow on the way"
    nans = int((np.isnan(got) & ~np.isnan(expected)).sum())
    return f"{nans / got.size:.0%} of them NaN" if nans else ""


def _nan_cause(got: Floats) -> str:
    """Buffers are filled with bytes 0xFF before a run; a CPU's arithmetic keeps them, a GPU's makes its own NaN."""
    filling = got.astype(np.float64).view(np.uint64) >> np.uint64(FILLING_SHIFT)
    if bool((filling == FILLING).all()):
        return "as buffers are filled beforehand: never written, or computed from what never was"
    if not bool((filling == FILLING).any()):
        return "computed: an overflow on the way (inf/inf, inf-inf), 0/0, or something read that was never written"
    return "some never written, others computed (inf/inf, inf-inf, 0/0)"


def _related(got: Floats, expected: Floats) -> str:
    """One value, factor, sign or offset for all of them."""
    known = np.isfinite(got) & np.isfinite(expected)
    if int(known.sum()) < RELATED or not known.all():
        return ""
    if bool((got == got[0]).all()):
        return f"all of them {got[0]:.6g}"
    if bool((expected != 0).all()):
        # Values of a narrow dtype are rounded, so small ones have rough ratios: weigh by size.
        factor = float((got * expected).sum() / np.square(expected).sum())
        if factor and _all_near(got, factor * expected):
            if abs(factor + 1) < SAME:
                return "each has the wrong sign"
            return f"each is {factor:.5g} times what is expected"
    offset = got - expected
    middle = float(np.median(offset))
    if middle and bool((np.abs(offset - middle) <= SAME * abs(middle)).all()):
        return f"each is off by {middle:+.6g}"
    return ""


def _all_near(values: Floats, others: Floats) -> bool:
    return bool((np.abs(values - others) <= SAME * np.abs(others)).all())
