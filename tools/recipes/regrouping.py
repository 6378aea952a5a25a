"""Reshapes as groups of dimensions: which sizes multiply to which, and what each new size is in symbols."""

from __future__ import annotations

from tools.recipes.sizes import ONE, Size, SizeTable, number, product

Dims = tuple[Size, ...]
"""Symbolic sizes of a value's dimensions, outermost first."""


def pair_groups(
    source: tuple[int, ...], target: tuple[int, ...]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Indices of source and target dimensions (sizes of 1 left out) whose products agree, in order.

    A reshape moves no element out of its group, so each pair can be solved on its own.
    """
    left = [i for i, n in enumerate(source) if n != 1]
    right = [i for i, n in enumerate(target) if n != 1]
    pairs: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    while left and right:
        taken, given = [left.pop(0)], [right.pop(0)]
        have, want = source[taken[0]], target[given[0]]
        while have != want and (left or right):
            if (have < want or not right) and left:
                taken.append(left.pop(0))
                have *= source[taken[-1]]
            elif right:
                given.append(right.pop(0))
                want *= target[given[-1]]
            else:
                break
        pairs.append((tuple(taken), tuple(given)))
    if pairs and (left or right):  # only with sizes of 0, whose products agree early
        taken_last, given_last = pairs[-1]
        pairs[-1] = ((*taken_last, *left), (*given_last, *right))
    return pairs


def regroup(
    table: SizeTable, source: Dims, shape: tuple[int, ...], twin: tuple[int, ...] | None = None
) -> Dims:
    """Sizes of a reshape of `source` to the captured `shape`, which is `twin` in the twin."""
    result = [ONE if n == 1 else number(n) for n in shape]
    values = tuple(size.value for size in source)
    for taken, given in pair_groups(values, shape):
        sources = tuple(source[i] for i in taken)
        others = tuple(twin[i] for i in given) if twin else None
        sizes = _divide_up(table, sources, tuple(shape[i] for i in given), others, leading=0 in taken)
        for index, size in zip(given, sizes, strict=True):
            result[index] = size
    return tuple(result)


def _divide_up(
    table: SizeTable, sources: Dims, shape: tuple[int, ...], twin: tuple[int, ...] | None, *, leading: bool
) -> Dims:
    """Split one product over `shape`: sizes that name a source keep it, one takes the rest, others are numbers."""
    whole = table.canonical(product(sources))
    if len(shape) == 1:
        return (whole,)
    pool = [Size(1, (atom,)) for atom in whole.atoms]
    found: list[Size | None] = []
    for wanted, other in zip(shape, twin or shape, strict=True):
        hit = next((s for s in pool if s.value == wanted and (not twin or s.twin == other)), None)
        if hit:
            pool.remove(hit)
        elif twin and wanted == other:
            hit = number(wanted)
        found.append(hit)
    missing = [i for i, size in enumerate(found) if size is None]
    if missing and whole.atoms:
        rest_at = next((i for i in (missing if leading else missing[::-1]) if shape[i] > 1), missing[-1])
        others = [number(shape[i]) if size is None else size for i, size in enumerate(found) if i != rest_at]
        found[rest_at] = table.quotient(whole, product(others))
    return tuple(size or number(wanted) for size, wanted in zip(found, shape, strict=True))
