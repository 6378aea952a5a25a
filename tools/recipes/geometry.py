"""Loops, strides and index arithmetic of one region, as C++ text and launch-plan dims.

Axes that every access walks alike are merged, so that most regions end with one or two loops. Rows are the axes that
are kept, columns those that are reduced; a region without reductions has rows only. Invariant: every size appears
in the source as a macro, never as a number of the captured problem.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from memory.records import DType
from tools.recipes.axes import Layout, Solved
from tools.recipes.micro import Slide
from tools.recipes.places import Place
from tools.recipes.sizes import ONE, Size, SizeTable, number, product

ZERO = number(0)


@dataclass(frozen=True)
class Window:
    """How the elements of a sliding window lie in the tensor that it slides over."""

    number: int
    """Within its region."""
    slide: Slide
    groups: tuple[tuple[int, ...], ...]
    """Axes of each dimension along which it slides."""
    strides: tuple[Size, ...]
    """Of the tensor, along each of these dimensions."""
    weight: Access | None = None
    """Of the channel's first weight."""
    weight_strides: tuple[Size, ...] = ()

    def slides(self, axis: int) -> bool:
        """True for an axis along which it slides."""
        return any(axis in group for group in self.groups)


@dataclass(frozen=True)
class Access:
    """How the elements of one value lie in a tensor: a stride for each axis (absent: 0)."""

    value: str
    tensor: str
    dtype: DType
    strides: dict[int, Size]
    offset: tuple[Size, ...] = ()
    dense: bool = True
    """Row-major without gaps over its own axes: larger strides are multiples of smaller ones' extents."""
    window: Window | None = None
    """Where an element takes a window of elements: the strides are then those of the window's first one."""

    def stride(self, axis: int) -> Size:
        """Elements between neighbours along `axis`."""
        return self.strides.get(axis, ZERO)


def load_access(value: str, place: Place, solved: Solved, dtype: DType, *, dense: bool) -> Access:
    """Access of a value read through `place`."""
    strides = _by_axis(solved.layouts[value], place.strides, solved)
    return Access(value, place.tensor, dtype, strides, place.offset, dense)


def window_access(
    slide: Slide, number_: int, place: Place, weight: tuple[Place, DType] | None, solved: Solved
) -> Access:
    """Access of a window's result, where the tensor that it slides over is at `place`.

    number_: of the window within its region. weight: place and dtype of the weights.
    """
    layout, rank = solved.layouts[slide.name], len(slide.axes)
    lead, along = place.strides[:-rank], place.strides[-rank:]
    steps = (*lead, *(step * number(axis.stride) for step, axis in zip(along, slide.axes, strict=True)))
    strides = _by_axis(layout, steps, solved)
    first, inner = None, tuple[Size, ...]()
    if weight is not None:
        filters, dtype = weight
        by_channel = _by_axis(layout[-rank - 1 : -rank], filters.strides[:1], solved)
        first = Access(slide.name, filters.tensor, dtype, by_channel, filters.offset, dense=False)
        inner = filters.strides[2:]
    window = Window(number_, slide, layout[-rank:], along, first, inner)
    return Access(slide.name, place.tensor, slide.dtype, strides, place.offset, dense=False, window=window)


def _by_axis(layout: Layout, steps: tuple[Size, ...], solved: Solved) -> dict[int, Size]:
    """Stride of each axis, from those of the dimensions that the axes make up."""
    strides: dict[int, Size] = {}
    for group, stride in zip(layout, steps, strict=True):
        step = stride
        for axis in reversed(group):
            strides[axis] = step
            step = step * solved.sizes[axis]
    return strides


def store_access(value: str, tensor: str, solved: Solved, dtype: DType, order: tuple[int, ...]) -> Access:
    """Access of a value written contiguously with its dimensions in `order`."""
    axes = [axis for dim in order for axis in solved.layouts[value][dim]]
    strides: dict[int, Size] = {}
    step = ONE
    for axis in reversed(axes):
        strides[axis] = step
        step = step * solved.sizes[axis]
    return Access(value, tensor, dtype, strides)


@dataclass(frozen=True)
class Loop:
    """Merged axes walked by one coordinate."""

    axes: tuple[int, ...]
    size: Size
    coordinate: str
    macro: str


@dataclass
class Geometry:
    """Everything a kernel needs to know about where its elements are."""

    prefix: str
    table: SizeTable
    rows: list[Loop]
    cols: list[Loop]
    loads: dict[str, Access]
    stores: dict[str, Access]
    by_column: bool
    """True where the innermost memory axis is kept: neighbouring threads own neighbouring rows."""
    dims: dict[str, str] = field(default_factory=dict)
    """Macros used so far, in the order they were asked for."""

    @property
    def vector_loop(self) -> Loop | None:
        """The loop that vector accesses run along."""
        loops = self.cols if self.cols and not self.by_column else self.rows
        return loops[-1] if loops else None

    def stride(self, access: Access, loop: Loop) -> Size:
        """Elements between neighbours along a loop."""
        return self.table.canonical(access.stride(loop.axes[-1]))

    def lane_stride(self, access: Access) -> Size:
        """Elements between neighbouring lanes of a vector."""
        return self.stride(access, self.vector_loop) if self.vector_loop else ZERO

    def macro(self, name: str, expression: str) -> str:
        """Declare a macro of this region; returns its full name."""
        full = f"{self.prefix}_{name}"
        self.dims.setdefault(full, expression)
        return full

    def index(self, access: Access, loops: Iterable[Loop], *, with_offset: bool = True) -> str:
        """Index of an element at the loops' coordinates; lane 0 of a vector. Windows add their own dimensions."""
        terms: list[str] = []
        for loop in loops:
            stride = self.stride(access, loop)
            if stride == ZERO or (access.window is not None and access.window.slides(loop.axes[-1])):
                continue
            text = self._size_text(stride)
            terms.append(loop.coordinate if text == "1" else f"{loop.coordinate} * {text}")
        if with_offset:
            terms += [f"(R_INDEX){self._size_text(self.table.canonical(part))}" for part in access.offset]
        return (" + ".join(terms) or "0").replace("R_INDEX", f"{self.prefix}_index")

    def axis_size(self, axis: int) -> Size:
        """Extent of one axis that no loop merges with others."""
        return next(loop.size for loop in (*self.rows, *self.cols) if loop.axes == (axis,))

    def size_macro(self, size: Size) -> str:
        """A number as text, anything else as a macro."""
        return self._size_text(size)

    def _size_text(self, size: Size) -> str:
        if not size.atoms:
            return str(size.factor)
        for loop in (*self.rows, *self.cols):
            if self.table.canonical(loop.size) == size and loop.macro in self.dims:
                return loop.macro
        for name, expression in self.dims.items():
            if expression == size.text:
                return name
        return self.macro(f"STRIDE{sum('_STRIDE' in d for d in self.dims)}", size.text)

    def coordinates(self, loops: list[Loop], linear: str, used: set[str]) -> list[str]:
        """Declarations that take a linear index apart; none where one loop is the index itself."""
        if len(loops) < 2:
            return []
        rest = f"rest_{linear}"
        wanted = [loop for loop in loops if loop.coordinate in used]
        if not wanted:
            return []
        lines = [f"{self.prefix}_index {rest} = {linear};"]
        first = loops.index(wanted[0])
        for position in range(len(loops) - 1, first - 1, -1):
            loop = loops[position]
            if loop.coordinate in used:
                text = f"{rest} % {loop.macro}" if position else rest
                lines.append(f"const {self.prefix}_index {loop.coordinate} = {text};")
            if position > first:
                lines.append(f"{rest} /= {loop.macro};")
        return lines

    def used_coordinates(self, accesses: Iterable[Access]) -> set[str]:
        """Coordinates along which at least one access moves."""
        return {
            loop.coordinate
            for access in _with_weights(accesses)
            for loop in (*self.rows, *self.cols)
            if self.stride(access, loop) != ZERO
        }

    def vector_expression(self, tunable: str) -> str:
        """Lanes per access: the largest power of two up to `tunable` that divides every vectorised row.

        Written so that it is 1, 2, 4 or 8: each of the three terms is the one before it, doubled, or 0.
        """
        loop = self.vector_loop
        if loop is None:
            return "1"
        parts = [loop.macro]
        for access in (*self.loads.values(), *self.stores.values()):
            if access.dense or access.window is not None or self.lane_stride(access) != ONE:
                continue
            others = [self.stride(access, other) for other in (*self.rows, *self.cols) if other is not loop]
            parts += [
                self._size_text(self.table.canonical(s)) for s in (*others, *access.offset) if s != ZERO
            ]
        terms = [
            f"{k // 2 if k > 2 else 1}*{self._divides(parts, k)}*min(1, {tunable}//{k})" for k in (2, 4, 8)
        ]
        return "1+" + "+".join(term.removeprefix("1*") for term in terms)

    def _divides(self, parts: list[str], k: int) -> str:
        rest = "+".join(f"{part}%{k}" for part in dict.fromkeys(parts))
        return f"(1-min(1, {rest}))"


def build_geometry(
    prefix: str, table: SizeTable, solved: Solved, loads: dict[str, Access], stores: dict[str, Access]
) -> Geometry:
    """Order the axes by memory, merge those that every access walks alike, and name the loops."""
    order = _memory_order(solved, loads, stores)
    rows = [axis for axis in order if axis not in solved.reduced]
    cols = [axis for axis in order if axis in solved.reduced]
    accesses = _with_weights((*loads.values(), *stores.values()))
    by_column = bool(cols) and order[-1] not in solved.reduced
    geometry = Geometry(prefix, table, [], [], loads, stores, by_column)
    kinds = (("i", "N", "D"),) if not cols else (("row", "ROWS", "R"), ("col", "COLS", "C"))
    for axes, (word, whole, letter), target in zip(
        (rows, cols), (*kinds, ("col", "COLS", "C")), (geometry.rows, geometry.cols), strict=False
    ):
        groups = _merge(axes, accesses, solved, table)
        total = product([solved.sizes[axis] for axis in axes])
        if axes or target is geometry.rows:
            geometry.macro(whole, table.canonical(total).text)
        for position, group in enumerate(groups):
            size = table.canonical(product([solved.sizes[axis] for axis in group]))
            alone = len(groups) == 1
            macro = f"{prefix}_{whole}" if alone else geometry.macro(f"{letter}{position}", size.text)
            target.append(Loop(group, size, word if alone else f"{letter.lower()}{position}", macro))
    return geometry


def _memory_order(solved: Solved, loads: dict[str, Access], stores: dict[str, Access]) -> list[int]:
    """Axes from the slowest to the fastest in memory, as the widest access has them."""
    full = [a for a in (*loads.values(), *stores.values()) if set(a.strides) == solved.domain]
    widest = max((layout for layout in map(solved.axes_of, solved.layouts)), key=len, default=())
    rest = [axis for axis in sorted(solved.domain) if axis not in widest]
    base = [*rest, *widest]
    if not full:
        return base
    best = max(full, key=lambda a: (sum(s.value > 0 for s in a.strides.values()), a.dtype.bytes))
    return sorted(base, key=lambda axis: (-best.stride(axis).value, base.index(axis)))


def _merge(
    axes: list[int], accesses: list[Access], solved: Solved, table: SizeTable
) -> list[tuple[int, ...]]:
    groups: list[tuple[int, ...]] = []
    sliding = {axis for a in accesses if a.window is not None for group in a.window.groups for axis in group}
    for axis in axes:
        apart = not groups or axis in sliding or groups[-1][-1] in sliding
        if not apart and all(_continues(groups[-1][-1], axis, a, solved, table) for a in accesses):
            groups[-1] = (*groups[-1], axis)
        else:
            groups.append((axis,))
    return groups


def _with_weights(accesses: Iterable[Access]) -> list[Access]:
    """The accesses, and those of the weights of windows among them."""
    found = list(accesses)
    return found + [a.window.weight for a in found if a.window is not None and a.window.weight is not None]


def _continues(outer: int, inner: int, access: Access, solved: Solved, table: SizeTable) -> bool:
    return table.same(access.stride(outer), access.stride(inner) * solved.sizes[inner])
