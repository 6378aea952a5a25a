"""Lowerings of views: inside a region they only rename the loops of a value, so they cost nothing."""

from __future__ import annotations

from tools.recipes.lowering import LOWERINGS, Context
from tools.recipes.micro import Expand, Reorder
from tools.recipes.shapes import permutation
from tools.recipes.sizes import ONE

RESHAPES = frozenset("view reshape _unsafe_view flatten unflatten squeeze unsqueeze view_copy".split())
REORDERS = frozenset("permute transpose t".split())


def _view(context: Context) -> bool:
    x = context.arguments.tensor(context.parameters[0])
    if x is None:
        return False
    dims = context.dims(context.output)
    if context.base in REORDERS:
        order = permutation(context.node, len(dims))
        context.draft.ops.append(Reorder(context.output, x, order))
    elif context.base in RESHAPES:
        context.draft.reshape(context.output, x, dims)
    else:
        context.draft.ops.append(Expand(context.output, x, dims))
    context.draft.dtypes[context.output] = context.dtype
    return True


def _repeat(context: Context) -> bool:
    """Every dimension becomes (repetitions, size), which a reshape joins again."""
    x = context.arguments.tensor(context.parameters[0])
    if x is None:
        return False
    dims = context.dims(context.output)
    source = (ONE,) * (len(dims) - len(context.dims(x))) + context.dims(x)
    times = [context.shapes.table.quotient(whole, part) for whole, part in zip(dims, source, strict=True)]
    apart = context.draft.reshape(
        context.draft.fresh("apart"), x, tuple(s for part in source for s in (ONE, part))
    )
    wide = tuple(s for pair in zip(times, source, strict=True) for s in pair)
    repeated = context.draft.fresh("repeated")
    context.draft.ops.append(Expand(repeated, apart, wide))
    context.draft.dtypes[repeated] = context.dtype
    context.draft.reshape(context.output, repeated, dims)
    return True


LOWERINGS.update(dict.fromkeys([*RESHAPES, *REORDERS, "expand"], _view))
LOWERINGS["repeat"] = _repeat
