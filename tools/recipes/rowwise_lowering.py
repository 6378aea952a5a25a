"""Lowerings of reductions: sums and extrema, moments, softmax, norms and losses.

Every one becomes maps and single-operand reductions, so that any chain of them fuses into one kernel. Variances are
two-pass (mean first, then squared distances): exact to a few roundings, and free where the row stays on chip.
"""

from __future__ import annotations

from memory.records import DType
from tools.recipes.arguments import normal_dims
from tools.recipes.lowering import LOWERINGS, Context, Lowering
from tools.recipes.micro import Combine, literal
from tools.recipes.shapes import reduced_dims

Dims = tuple[int, ...]


def _source(context: Context) -> str | None:
    """The reduced tensor, converted to the result's type where that is wider."""
    x = context.arguments.tensor(context.parameters[0])
    if x is None or not context.dims(x):
        return None
    return x


def _in(context: Context, x: str, dtype: DType) -> str:
    if context.draft.dtypes[x] == dtype:
        return x
    return context.draft.map(context.draft.fresh("wide"), dtype, "{0}", x)


def _finish(context: Context, name: str | None, reduced: str, text: str, *more: str) -> None:
    """Name a kept reduction as a result of the node, in that result's dimensions."""
    if name is None:
        return
    dtype = context.graph.values[name].dtype
    shaped = context.draft.map(context.draft.fresh("kept"), dtype, text, reduced, *more)
    context.draft.reshape(name, shaped, context.dims(name))


def _sum(context: Context) -> bool:
    x = _source(context)
    if x is None or context.dtype is DType.BOOL:
        return False
    dims = reduced_dims(context.arguments, len(context.dims(x)))
    combine = Combine.PRODUCT if context.base == "prod" else Combine.SUM
    total = context.draft.reduce("total", combine, _in(context, x, context.dtype), dims)
    text = f"{{0}} / {_count(context.dtype)}" if context.base == "mean" else "{0}"
    _finish(context, context.output, total, text)
    return True


def _count(dtype: DType) -> str:
    return "(double)COUNT" if dtype is DType.F64 else "(float)COUNT"


def _extremum(context: Context) -> bool:
    x = _source(context)
    binary = "other" in context.parameters
    if x is None or binary or any(name is not None for name in context.node.outputs[1:]):
        return False
    if context.draft.dtypes[x] is DType.BOOL:
        return False
    dims = reduced_dims(context.arguments, len(context.dims(x)))
    combine = Combine.MAXIMUM if "max" in context.base else Combine.MINIMUM
    _finish(context, context.output, context.draft.reduce("extreme", combine, x, dims), "{0}")
    return True


def _max_or_min(context: Context) -> bool:
    if "other" in context.parameters:
        return LOWERINGS["maximum" if context.base == "max" else "minimum"](context)
    return _extremum(context)


def _any_or_all(context: Context) -> bool:
    x = _source(context)
    if x is None:
        return False
    dims = reduced_dims(context.arguments, len(context.dims(x)))
    flag = context.draft.raw(context.draft.fresh("flag"), DType.I32, "({0} != 0) ? 1 : 0", x)
    combine = Combine.MAXIMUM if context.base == "any" else Combine.MINIMUM
    found = context.draft.reduce("found", combine, flag, dims)
    truth = context.draft.raw(context.draft.fresh("truth"), DType.BOOL, "{0} > 0", found)
    context.draft.reshape(context.output, truth, context.dims(context.output))
    return True


def moments(context: Context, x: str, dims: Dims) -> tuple[str, str, str]:
    """(mean, x - mean, sum of squared distances) of a row, reductions kept."""
    draft = context.draft
    dtype = draft.dtypes[x]
    total = draft.reduce("total", Combine.SUM, x, dims)
    mean = draft.map(draft.fresh("mean"), dtype, f"{{0}} / {_count(dtype)}", total)
    centred = draft.map(draft.fresh("centred"), dtype, "{0} - {1}", x, mean)
    square = draft.map(draft.fresh("square"), dtype, "{0} * {0}", centred)
    spread = draft.reduce("spread", Combine.SUM, square, dims)
    draft.shortcut(Combine.MOMENTS, x, dims, ((mean, "{0}.mean"), (spread, "{0}.spread")))
    return mean, centred, spread


def _variance(context: Context) -> bool:
    x = _source(context)
    if x is None or not context.draft.dtypes[x].is_floating:
        return False
    dims = reduced_dims(context.arguments, len(context.dims(x)))
    correction = context.arguments.real("correction", 1.0)
    if context.arguments.get("unbiased") is False:
        correction = 0.0
    mean, _, spread = moments(context, x, dims)
    count = _count(context.draft.dtypes[x])
    kind = count[1:].split(")")[0]
    text = f"{{0}} / {count}" if correction == 0 else f"{{0}} / ({count} - ({kind}){correction})"
    if "std" in context.base:
        text = f"sqrt@({text})"
    _finish(context, context.node.outputs[0], spread, text)
    if "_mean" in context.base:
        _finish(context, context.node.outputs[1], mean, "{0}")
    return True


def _softmax(context: Context) -> bool:
    x = _source(context)
    if x is None or not context.dtype.is_floating:
        return False
    draft, dtype = context.draft, context.dtype
    rank = len(context.dims(x))
    x = _in(context, x, dtype)
    dims = normal_dims((context.arguments.integer("dim", -1),), rank)
    peak = draft.reduce("peak", Combine.MAXIMUM, x, dims)
    shifted = draft.map(draft.fresh("shifted"), dtype, "{0} - {1}", x, peak)
    power = draft.map(draft.fresh("power"), dtype, "exp@({0})", shifted, cheap=False)
    total = draft.reduce("total", Combine.SUM, power, dims)
    infinite, nothing = literal(float("inf"), dtype), literal(float("nan"), dtype)
    one_sweep = f"{{0}}.peak == {infinite} ? {nothing} : {{0}}.total"  # inf - inf, as in two sweeps
    draft.shortcut(Combine.EXPONENTIALS, x, dims, ((peak, "{0}.peak"), (total, one_sweep)))
    if "log" in context.base:
        scale = draft.map(draft.fresh("log"), dtype, "log@({0})", total)
        context.emit("{0} - {1}", shifted, scale)
    elif context.base == "_safe_softmax":
        empty = literal(float("-inf"), dtype)
        context.emit(f"{{2}} == {empty} ? 0.0L : {{0}} / {{1}}", power, total, peak)
    else:
        context.emit("{0} / {1}", power, total)
    return True


def _logsumexp(context: Context) -> bool:
    x = _source(context)
    if x is None or not context.draft.dtypes[x].is_floating:
        return False
    draft, dtype = context.draft, context.draft.dtypes[x]
    dims = reduced_dims(context.arguments, len(context.dims(x)))
    peak = draft.reduce("peak", Combine.MAXIMUM, x, dims)
    infinite = literal(float("inf"), dtype)
    base = draft.map(draft.fresh("base"), dtype, f"fabs@({{0}}) == {infinite} ? 0.0L : {{0}}", peak)
    power = draft.map(draft.fresh("power"), dtype, "exp@({0} - {1})", x, base, cheap=False)
    total = draft.reduce("total", Combine.SUM, power, dims)
    one_sweep = f"fabs@({{0}}.peak) == {infinite} ? exp@({{0}}.peak) : {{0}}.total"
    draft.shortcut(Combine.EXPONENTIALS, x, dims, ((peak, "{0}.peak"), (total, one_sweep)))
    _finish(context, context.output, total, "log@({0}) + {1}", base)
    return True


def _vector_norm(context: Context) -> bool:
    x = _source(context)
    if x is None or not context.draft.dtypes[x].is_floating:
        return False
    order = context.arguments.real("ord" if "ord" in context.parameters else "p", 2.0)
    dims = reduced_dims(context.arguments, len(context.dims(x)))
    draft, dtype = context.draft, context.dtype
    x = _in(context, x, dtype)
    texts = {1.0: ("fabs@({0})", "{0}"), 2.0: ("{0} * {0}", "sqrt@({0})")}
    texts |= {float("inf"): ("fabs@({0})", "{0}"), float("-inf"): ("fabs@({0})", "{0}")}
    if order not in texts:
        return False
    before, after = texts[order]
    combine = {float("inf"): Combine.MAXIMUM, float("-inf"): Combine.MINIMUM}.get(order, Combine.SUM)
    term = draft.map(draft.fresh("term"), dtype, before, x)
    _finish(context, context.output, draft.reduce("total", combine, term, dims), after)
    return True


_LOSSES = {
    "mse_loss": "{0} * {0}",
    "l1_loss": "fabs@({0})",
    "smooth_l1_loss": "fabs@({0}) < BETA ? 0.5L * {0} * {0} / BETA : fabs@({0}) - 0.5L * BETA",
    "huber_loss": "fabs@({0}) <= BETA ? 0.5L * {0} * {0} : BETA * (fabs@({0}) - 0.5L * BETA)",
}
"""By the difference of the two operands."""


def _loss(context: Context) -> bool:
    x, target = context.arguments.tensor("self"), context.arguments.tensor("target")
    if x is None or target is None or not context.dtype.is_floating:
        return False
    beta = context.arguments.real("delta" if context.base == "huber_loss" else "beta", 1.0)
    text = _LOSSES[context.base].replace("BETA", literal(beta, context.dtype))
    reduction = context.arguments.integer("reduction", 1)
    if beta == 0.0 or len(context.dims(x)) != len(context.dims(target)) or not context.dims(x):
        return False
    apart = context.draft.map(context.draft.fresh("apart"), context.dtype, "{0} - {1}", x, target)
    if reduction == 0:
        context.emit(text, apart)
        return True
    term = context.draft.map(context.draft.fresh("term"), context.dtype, text, apart)
    total = context.draft.reduce("total", Combine.SUM, term, tuple(range(len(context.dims(x)))))
    _finish(context, context.output, total, f"{{0}} / {_count(context.dtype)}" if reduction == 1 else "{0}")
    return True


_TABLE: dict[Lowering, str] = {
    _sum: "sum mean prod",
    _extremum: "amax amin",
    _max_or_min: "max min",
    _any_or_all: "any all",
    _variance: "var std var_mean std_mean",
    _softmax: "softmax _softmax log_softmax _log_softmax _safe_softmax",
    _logsumexp: "logsumexp",
    _vector_norm: "linalg_vector_norm norm",
    _loss: " ".join(_LOSSES),
}
for _lowering, _names in _TABLE.items():
    LOWERINGS.update(dict.fromkeys(_names.split(), _lowering))
