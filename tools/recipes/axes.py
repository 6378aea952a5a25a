"""The loops that the values of a region share.

Every dimension of every value is a group of axes. Broadcasting makes two groups the same axes, a reshape regroups
them (splitting an axis where the graph splits a dimension), a permutation reorders them: views cost nothing inside a
region. Invariant of a solved region: no value holds an axis twice, and every reduction runs over the same axes of
operands that cover the whole region, so that nothing is computed more often than once per row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tools.recipes.micro import Expand, Fill, Map, Micro, Reduce, Reorder, Reshape, Shortcut, Slide
from tools.recipes.sizes import Size, SizeTable, product

Group = tuple[int, ...]
Layout = tuple[Group, ...]


@dataclass(frozen=True)
class Solved:
    """Axes of a region."""

    sizes: dict[int, Size]
    layouts: dict[str, Layout]
    """Axes of each dimension of each value, outermost first."""
    depends: dict[str, frozenset[int]]
    """Axes along which a value really varies."""
    reduced: frozenset[int]
    loads: tuple[str, ...]
    """Values the region reads, in order of first use; a window's result is one."""

    @property
    def domain(self) -> frozenset[int]:
        """All axes."""
        return frozenset(self.sizes)

    @property
    def rows(self) -> frozenset[int]:
        """Axes that are not reduced."""
        return self.domain - self.reduced

    def axes_of(self, name: str) -> Group:
        """Axes of a value in its row-major order."""
        return tuple(axis for group in self.layouts[name] for axis in group)

    def storable(self, name: str) -> bool:
        """True where each element of `name` is made exactly once: it spans all axes, or all rows."""
        axes = frozenset(self.axes_of(name))
        return axes == self.domain or (bool(self.reduced) and axes == self.rows and not self._varies(name))

    def _varies(self, name: str) -> bool:
        return bool(self.depends[name] & self.reduced)


def solve(
    ops: Iterable[Micro], dims_of: Callable[[str], tuple[Size, ...]], table: SizeTable
) -> Solved | None:
    """Axes of a region made of `ops` in order; None where they do not share one loop nest."""
    solver = _Solver(dims_of, table)
    for op in ops:
        if not solver.add(op):
            return None
    return solver.finish()


class _Solver:
    def __init__(self, dims_of: Callable[[str], tuple[Size, ...]], table: SizeTable) -> None:
        self.dims_of = dims_of
        self.table = table
        self.sizes: dict[int, Size] = {}
        self.merged: dict[int, int] = {}
        self.parts: dict[int, Group] = {}
        self.layouts: dict[str, Layout] = {}
        self.ops: list[Micro] = []
        self.loads: list[str] = []
        self.reductions: list[tuple[str, Group]] = []

    # --- axes -------------------------------------------------------------------------------------------------

    def fresh(self, size: Size) -> Group:
        if size.value == 1:
            return ()
        axis = len(self.sizes)
        self.sizes[axis] = self.table.canonical(size)
        return (axis,)

    def flat(self, group: Group) -> Group:
        """The axes a group consists of after all merges and splits so far."""
        out: list[int] = []
        for axis in group:
            while axis in self.merged:
                axis = self.merged[axis]
            out.extend(self.flat(self.parts[axis]) if axis in self.parts else (axis,))
        return tuple(out)

    def split(self, axis: int, outer: Size) -> Group:
        inner = self.table.quotient(self.sizes[axis], outer)
        self.parts[axis] = (*self.fresh(outer), *self.fresh(inner))
        return self.parts[axis]

    def merge(self, left: int, right: int) -> None:
        keep, drop = (left, right) if self.sizes[left].atoms else (right, left)
        self.table.equate(self.sizes[keep], self.sizes[drop])
        self.merged[drop] = keep

    def unify(self, one: Group, other: Group) -> bool:
        """Make two groups of equal extent the same axes."""
        left, right = list(self.flat(one)), list(self.flat(other))
        while left and right:
            x, y = left.pop(0), right.pop(0)
            if x == y:
                continue
            x_value, y_value = self.sizes[x].value, self.sizes[y].value
            if x_value > y_value > 0 and x_value % y_value == 0:
                x, rest = self.split(x, self.sizes[y])
                left.insert(0, rest)
            elif y_value > x_value > 0 and y_value % x_value == 0:
                y, rest = self.split(y, self.sizes[x])
                right.insert(0, rest)
            elif x_value != y_value:
                return False
            self.merge(x, y)
            left, right = list(self.flat(tuple(left))), list(self.flat(tuple(right)))
        return not left and not right

    # --- operations -------------------------------------------------------------------------------------------

    def layout(self, name: str) -> Layout:
        if name not in self.layouts:
            self.layouts[name] = tuple(self.fresh(size) for size in self.dims_of(name))
            self.loads.append(name)
        return self.layouts[name]

    def add(self, op: Micro) -> bool:
        """Take one operation in; False where its operands do not fit the loops so far."""
        self.ops.append(op)
        if isinstance(op, Fill):
            self.layouts[op.name] = tuple(self.fresh(size) for size in op.dims)
            return True
        if isinstance(op, Map):
            return self.add_map(op)
        if isinstance(op, Slide):
            self.layouts[op.name] = tuple(self.fresh(size) for size in op.dims)
            self.loads.append(op.name)
            return True
        if isinstance(op, Shortcut):
            return True  # its values have layouts already
        source = self.layout(op.operand)
        if isinstance(op, Reduce):
            gone = tuple(axis for d in op.dims for axis in source[d])
            self.reductions.append((op.operand, gone))
            kept = [() if d in op.dims else group for d, group in enumerate(source)]
            self.layouts[op.name] = tuple(g for d, g in enumerate(kept) if op.keep or d not in op.dims)
            return True
        if isinstance(op, Reorder):
            self.layouts[op.name] = tuple(source[axis] for axis in op.order)
            return True
        if isinstance(op, Expand):
            padded = ((),) * (len(op.dims) - len(source)) + source
            self.layouts[op.name] = tuple(
                g or self.fresh(size) for g, size in zip(padded, op.dims, strict=True)
            )
            return True
        return self.add_reshape(op, source)

    def add_map(self, op: Map) -> bool:
        layouts = [self.layout(name) for name in op.operands]
        rank = max((len(layout) for layout in layouts), default=0)
        result: list[Group] = []
        for back in range(rank, 0, -1):
            groups = [layout[-back] for layout in layouts if len(layout) >= back and self.flat(layout[-back])]
            if any(not self.unify(groups[0], other) for other in groups[1:]):
                return False
            result.append(groups[0] if groups else ())
        self.layouts[op.name] = tuple(result)
        return True

    def add_reshape(self, op: Reshape, source: Layout) -> bool:
        left = list(self.flat(tuple(axis for group in source for axis in group)))
        result: list[Group] = []
        for size in op.dims:
            taken: list[int] = []
            have = 1
            while have != size.value:
                if not left or have == 0:
                    return False
                axis = left.pop(0)
                need, rest = divmod(size.value, have)
                value = self.sizes[axis].value
                if (
                    rest
                    or (value > need and (need < 1 or value % need))
                    or (value < need and need % max(value, 1))
                ):
                    return False
                if value > need:
                    wanted = self.table.quotient(size, product([self.sizes[t] for t in taken]))
                    axis, inner = self.split(axis, wanted)
                    left.insert(0, inner)
                taken.append(axis)
                have *= self.sizes[axis].value
            result.append(tuple(taken))
        self.layouts[op.name] = tuple(result)
        return not left

    # --- checks -----------------------------------------------------------------------------------------------

    def finish(self) -> Solved | None:
        layouts = {name: tuple(self.flat(g) for g in layout) for name, layout in self.layouts.items()}
        used = {axis for layout in layouts.values() for group in layout for axis in group}
        for layout in layouts.values():
            axes = [axis for group in layout for axis in group]
            if len(axes) != len(set(axes)):
                return None
        reduced = {frozenset(self.flat(gone)) for _, gone in self.reductions}
        if len(reduced) > 1:
            return None
        for operand, _ in self.reductions:
            if {axis for group in layouts[operand] for axis in group} != used:
                return None
        gone = next(iter(reduced), frozenset())
        depends = self.dependences(layouts, gone)
        return Solved(
            sizes={axis: self.table.canonical(self.sizes[axis]) for axis in sorted(used)},
            layouts=layouts,
            depends=depends,
            reduced=gone,
            loads=tuple(self.loads),
        )

    def dependences(self, layouts: dict[str, Layout], gone: frozenset[int]) -> dict[str, frozenset[int]]:
        """Axes along which each value varies: a fill varies along none, a reduction along none of the reduced."""
        found = {name: frozenset(a for group in layouts[name] for a in group) for name in self.loads}
        for op in self.ops:
            if isinstance(op, Map):
                found[op.name] = frozenset(a for name in op.operands for a in found[name])
            elif isinstance(op, Fill):
                found[op.name] = frozenset()
            elif not isinstance(op, Slide):  # which is a load
                found[op.name] = found[op.operand] - (
                    gone if isinstance(op, Reduce | Shortcut) else frozenset()
                )
        return found
