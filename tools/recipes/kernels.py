"""What a kernel family gets and gives: a region with its loops in, source and launch steps out."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from memory.records import Buffer, DType, KernelStep, Tunable
from tools.recipes import windows
from tools.recipes.axes import Solved
from tools.recipes.body import Body
from tools.recipes.geometry import Geometry
from tools.recipes.micro import Micro
from tools.recipes.passes import Schedule, schedule


class Variant(StrEnum):
    """How the threads of a region are laid out."""

    VECTOR = "vector"
    """Elementwise: each thread takes a few vectors."""
    TILED = "tiled"
    """Elementwise, read along one dimension and written along another: a block takes a tile through shared memory."""
    WARP_PER_ROW = "warp_per_row"
    """Part of a warp, or a whole one, owns a row and keeps it in registers."""
    BLOCK_PER_ROW = "block_per_row"
    """A block owns a row and keeps it in registers."""
    SHARED_ROW = "shared_row"
    """A block owns a row and keeps it in shared memory."""
    MULTI_PASS = "multi_pass"
    """A block owns a row and reads it again in every sweep."""
    SPLIT_ROW = "split_row"
    """Several blocks share a row; each sweep is a kernel of its own."""
    COLUMNS = "columns"
    """Neighbouring threads own neighbouring rows, because that is how they lie in memory; values are kept."""
    COLUMNS_MULTI_PASS = "columns_multi_pass"
    """The same, reading again in every sweep."""


KEEPING = frozenset({Variant.WARP_PER_ROW, Variant.BLOCK_PER_ROW, Variant.SHARED_ROW, Variant.COLUMNS})


@dataclass(frozen=True)
class RegionPlan:
    """One region ready to be written as kernels."""

    prefix: str
    variant: Variant
    geometry: Geometry
    solved: Solved
    ops: tuple[Micro, ...]
    stores: tuple[str, ...]
    dtypes: dict[str, DType]
    words: tuple[str, ...]
    """Names of the operations, for the comment."""

    def schedule(self) -> Schedule:
        """The region's sweeps, keeping values where the variant does."""
        keep = self.variant in KEEPING
        return schedule(self.ops, self.solved, self.stores, self.dtypes, keep=keep)

    def body(self) -> Body:
        """Statement writer."""
        count = f"{self.prefix}_COLS" if self.solved.reduced else "1"
        return Body(self.geometry, self.schedule(), count)

    @property
    def rows(self) -> int:
        """Rows at the captured shapes."""
        return _volume(self.solved, self.solved.rows)

    @property
    def cols(self) -> int:
        """Elements of a row at the captured shapes."""
        return _volume(self.solved, self.solved.reduced)

    @property
    def widest_bytes(self) -> int:
        """Largest element size that the region touches."""
        accesses = (*self.geometry.loads.values(), *self.geometry.stores.values())
        return max((a.dtype.bytes for a in accesses), default=4)

    @property
    def title(self) -> str:
        """Operations, shortened."""
        names = list(dict.fromkeys(self.words))
        return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


@dataclass
class KernelSet:
    """Kernels of one region."""

    source: list[str] = field(default_factory=list)
    steps: list[KernelStep] = field(default_factory=list)
    tunables: list[Tunable] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    """Partial results that the kernels hand to each other."""


def _volume(solved: Solved, axes: frozenset[int]) -> int:
    count = 1
    for axis in axes:
        count *= solved.sizes[axis].value
    return count


def preamble(plan: RegionPlan) -> list[str]:
    """What the region's kernels are written with: the integer that counts elements, and functions for windows."""
    return [*_index_type(plan), *windows.functions(plan.geometry)]


def _index_type(plan: RegionPlan) -> list[str]:
    """64 bits only where 32 could overflow, since their arithmetic is slower."""
    geometry = plan.geometry
    whole = f"{plan.prefix}_ROWS*{plan.prefix}_COLS" if plan.solved.reduced else f"{plan.prefix}_N"
    extents = [whole]
    for access in (*geometry.loads.values(), *geometry.stores.values()):
        if access.dense:
            continue
        terms = [part.text for part in access.offset]
        if access.window is not None:  # a window's last element lies beyond its first
            for stride, axis in zip(access.window.strides, access.window.slide.axes, strict=True):
                terms.append(f"{geometry.size_macro(stride)}*{(axis.kernel - 1) * axis.dilation}")
        for loop in (*geometry.rows, *geometry.cols):
            stride = geometry.stride(access, loop)
            if stride.value:
                terms.append(f"{geometry.size_macro(stride)}*{loop.macro}")
        extents += ["+".join(terms)] if terms else []
    extents = list(dict.fromkeys(extents))
    largest = f"max({', '.join(extents)})" if len(extents) > 1 else extents[0]
    wide = geometry.macro("WIDE", f"min(1, ({largest})//2130000000)")
    return [
        f"#if {wide}",
        f"typedef long long {plan.prefix}_index;",
        "#else",
        f"typedef int {plan.prefix}_index;",
        "#endif",
    ]


def choose(name: str, value: int, choices: tuple[int, ...]) -> Tunable:
    """A tunable whose value is the choice nearest to `value` from below."""
    fitting = [c for c in choices if c <= value] or [min(choices)]
    return Tunable(name=name, value=max(fitting), choices=choices)
