"""One kernel for all regions that would get the same: deep networks repeat themselves.

Two regions share where their texts are equal but for the names of values, and their sizes are equal in symbols, with
the shapes of weights taken as the numbers they are (a Program belongs to one set of weights' shapes).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from memory.records import Buffer, KernelStep, TensorSpec
from tools.recipes.kernels import KernelSet, RegionPlan

_ROLES = "_in|_out|_pack|_result|_kept|_part|_partial_in|_partial_out|_scratch|_row_scratch|_mine|_block"
_SIZE = re.compile(r"\b(\w+)\.shape\[(\d+)\]")
_PRODUCT = re.compile(r"[\w.\[\]]+(?:\*[\w.\[\]]+)+")


class SharedKernels:
    """Kernels written so far, by what they do."""

    def __init__(self, state: Mapping[str, TensorSpec]) -> None:
        """`state`: weights, whose shapes count as numbers."""
        self._state = state
        self._first: dict[tuple[str, ...], tuple[str, KernelSet]] = {}

    def share(self, plan: RegionPlan, made: KernelSet) -> KernelSet:
        """`made`, or launches of an earlier region's kernels with this region's tensors."""
        key = self._key(plan, made)
        if key not in self._first:
            self._first[key] = (plan.prefix, made)
            return made
        prefix, first = self._first[key]
        steps = [
            KernelStep(
                entry=theirs.entry,
                grid=theirs.grid,
                block=theirs.block,
                shared_bytes=theirs.shared_bytes,
                args=mine.args,
            )
            for theirs, mine in zip(first.steps, made.steps, strict=True)
        ]
        buffers = [
            Buffer(
                name=b.name, shape=tuple(_named(text, plan.prefix, prefix) for text in b.shape), dtype=b.dtype
            )
            for b in made.buffers
        ]
        return KernelSet(steps=steps, buffers=buffers)

    def _key(self, plan: RegionPlan, made: KernelSet) -> tuple[str, ...]:
        dims = [f"{name}={self._numbers(text)}" for name, text in plan.geometry.dims.items()]
        tunables = [f"{t.name}={t.value}{t.choices}" for t in made.tunables]
        launches = [f"{s.entry}{s.grid}{s.block}{s.shared_bytes}" for s in made.steps]
        code = [line for line in made.source if not line.lstrip().startswith("//")]
        names = {op.name for op in plan.ops} | set(plan.geometry.loads) | set(plan.geometry.stores)
        names |= {a.tensor for a in (*plan.geometry.loads.values(), *plan.geometry.stores.values())}
        text = _anonymous(_named("\n".join(code), plan.prefix, "R"), names)
        # Sizes name inputs of the graph, which are the same ones for every region.
        return (text, *(_named(part, plan.prefix, "R") for part in (*dims, *tunables, *launches)))

    def _numbers(self, text: str) -> str:
        """An expression with weights' sizes as numbers and the factors of products in order."""

        def size(match: re.Match[str]) -> str:
            spec = self._state.get(match[1])
            return match[0] if spec is None else str(spec.shape[int(match[2])])

        def ordered(match: re.Match[str]) -> str:
            factors = match[0].split("*")
            count = 1
            for factor in factors:
                count *= int(factor) if factor.isdigit() else 1
            return "*".join([str(count), *sorted(f for f in factors if not f.isdigit())])

        return _PRODUCT.sub(ordered, _SIZE.sub(size, text))


def _named(text: str, prefix: str, other: str) -> str:
    """`text` with another region's prefix on macros, types and kernels."""
    text = re.sub(rf"\b{prefix}(?=[_:])", other, text)
    return re.sub(rf"\b{prefix.lower()}(?=_)", other.lower(), text)


def _anonymous(text: str, names: set[str]) -> str:
    """`text` with the names of values replaced by their order of appearance."""
    if not names:
        return text
    listed = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    pattern = re.compile(rf"(?<!\.)\b(r_)?({listed})(_?)({_ROLES})?\b(?!\()")
    order: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        label = order.setdefault(match[2], f"value{len(order)}")
        return f"{match[1] or ''}{label}{match[4] or ''}"

    return pattern.sub(number, text)
