"""A problem's smaller twin: which input sizes shrink so that a simulator can run it. Pure search over shapes.

Invariants: sizes stay even multiples where they were (a size halves while it is even, an odd size stays odd), so
that alignment survives; no size falls below 2; equal sizes shrink together before any shrinks alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memory.records import TensorSpec, contiguous_strides

Shapes = tuple[tuple[int, ...], ...]
_Slot = tuple[int, int]
"""Input and dimension."""


def shrink(
    shapes: Shapes, *, limit: int, measure: Callable[[Shapes], int | None], accepts: Callable[[Shapes], bool]
) -> Shapes | None:
    """Smaller input shapes, at most `limit` elements where that can be reached; None where nothing shrinks.

    measure: elements of inputs and outputs at these shapes, None where the module does not run.
    accepts: a last, slower check of a finished change (the captured operations stay the same).
    """
    current, total = shapes, measure(shapes)
    for slots in _candidates(shapes):
        if total is None or total <= limit:
            break
        trial, trial_total = current, total
        while trial_total > limit and (smaller := _halve(trial, slots)) is not None:
            measured = measure(smaller)
            if measured is None or measured >= trial_total:
                break
            trial, trial_total = smaller, measured
        if trial != current and accepts(trial):
            current, total = trial, trial_total
    return current if current != shapes else None


def smaller_size(size: int) -> int | None:
    """Half of an even size; about half of an odd one, odd again; None below 4."""
    if size < 4:
        return None
    return size // 2 if size % 2 == 0 else max(size // 2 | 1, 3)


def resized(spec: TensorSpec, shape: tuple[int, ...]) -> TensorSpec:
    """A spec of another shape with the same order of dimensions in memory; broadcast ones stay broadcast."""
    if spec.is_contiguous:
        return TensorSpec.dense(shape, spec.dtype)
    order = sorted(range(len(shape)), key=lambda d: (-spec.strides[d], d))
    kept = [d for d in order if spec.strides[d] != 0]
    dense = dict(zip(kept, contiguous_strides(tuple(shape[d] for d in kept)), strict=True))
    return TensorSpec(
        shape=shape, dtype=spec.dtype, strides=tuple(dense.get(d, 0) for d in range(len(shape)))
    )


def _candidates(shapes: Shapes) -> list[frozenset[_Slot]]:
    """Sets of dimensions to shrink together: all of one size (first dimensions first), then one dimension's."""
    leading = sorted({shape[0] for shape in shapes if shape}, reverse=True)
    others = sorted({size for shape in shapes for size in shape[1:]} - set(leading), reverse=True)
    found: list[frozenset[_Slot]] = [_slots(shapes, size, None) for size in (*leading, *others)]
    ranks = max((len(shape) for shape in shapes), default=0)
    for dimension in range(ranks):
        sizes = sorted({shape[dimension] for shape in shapes if len(shape) > dimension}, reverse=True)
        found += [_slots(shapes, size, dimension) for size in sizes]
    return list(dict.fromkeys(found))


def _slots(shapes: Shapes, size: int, dimension: int | None) -> frozenset[_Slot]:
    return frozenset(
        (i, d)
        for i, shape in enumerate(shapes)
        for d, own in enumerate(shape)
        if own == size and dimension in (None, d)
    )


def _halve(shapes: Shapes, slots: frozenset[_Slot]) -> Shapes | None:
    values = {shapes[i][d] for i, d in slots}
    changed = {value: smaller_size(value) for value in values}
    if any(new is None for new in changed.values()):
        return None
    return tuple(
        tuple((changed[own] or own) if (i, d) in slots else own for d, own in enumerate(shape))
        for i, shape in enumerate(shapes)
    )


def total_elements(specs: Sequence[TensorSpec]) -> int:
    """Elements of all these tensors."""
    return sum(spec.elements for spec in specs)
