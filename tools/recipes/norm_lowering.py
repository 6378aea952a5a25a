"""Lowerings of layer, RMS, group, batch and instance normalisation."""

from __future__ import annotations

from memory.records import DType
from tools.recipes.lowering import LOWERINGS, Context, Lowering
from tools.recipes.micro import Combine, literal
from tools.recipes.rowwise_lowering import Dims, moments
from tools.recipes.sizes import ONE, Size, number

_EPSILON = {DType.F64: 2.220446049250313e-16, DType.F32: 1.1920928955078125e-07, DType.F16: 0.0009765625}


def _rstd(context: Context, spread: str) -> str:
    """1 / sqrt(variance + eps) from the sum of squared distances."""
    draft = context.draft
    dtype = draft.dtypes[spread]
    count = "(double)COUNT" if dtype is DType.F64 else "(float)COUNT"
    epsilon = literal(context.arguments.real("eps", 1e-5), dtype)
    return draft.map(draft.fresh("rstd"), dtype, f"rsqrt@({{0}} / {count} + {epsilon})", spread)


def _affine(context: Context, x: str, scale: str, weight: str | None, bias: str | None) -> str:
    """`x * scale * weight + bias` in the order PyTorch's kernels multiply; returns a temporary."""
    draft, dtype = context.draft, context.dtype
    done = draft.map(draft.fresh("scaled"), dtype, "{0} * {1}", x, scale)
    if weight:
        done = draft.map(draft.fresh("weighted"), dtype, "{0} * {1}", done, weight)
    return draft.map(draft.fresh("shifted"), dtype, "{0} + {1}", done, bias) if bias else done


def _statistics(context: Context, *values: str) -> None:
    """Name mean and rstd where the graph uses them; they come in the result's dimensions."""
    for name, value in zip(context.node.outputs[1:3], values, strict=False):
        if name is not None:
            context.draft.reshape(name, value, context.dims(name))


def _layer_norm(context: Context) -> bool:
    x = context.arguments.tensor("input")
    if x is None:
        return False
    rank, inner = len(context.dims(x)), len(context.arguments.integers("normalized_shape"))
    dims = tuple(range(rank - inner, rank))
    mean, centred, spread = moments(context, x, dims)
    rstd = _rstd(context, spread)
    weight, bias = context.arguments.tensor("weight"), context.arguments.tensor("bias")
    done = _affine(context, centred, rstd, weight, bias)
    if context.node.outputs[0]:
        context.emit("{0}", done)
    _statistics(context, mean, rstd)
    return True


def _rms_norm(context: Context) -> bool:
    x = context.arguments.tensor("input")
    if x is None:
        return False
    draft, dtype = context.draft, context.draft.dtypes[x]
    rank, inner = len(context.dims(x)), len(context.arguments.integers("normalized_shape"))
    dims = tuple(range(rank - inner, rank))
    epsilon = context.arguments.real("eps", _EPSILON.get(dtype, 0.0078125))
    square = draft.map(draft.fresh("square"), dtype, "{0} * {0}", x)
    total = draft.reduce("total", Combine.SUM, square, dims)
    count = "(double)COUNT" if dtype is DType.F64 else "(float)COUNT"
    rstd = draft.map(
        draft.fresh("rstd"), dtype, f"rsqrt@({{0}} / {count} + {literal(epsilon, dtype)})", total
    )
    context.emit("{0}", _affine(context, x, rstd, context.arguments.tensor("weight"), None))
    _statistics(context, rstd)
    return True


def _group_norm(context: Context) -> bool:
    x = context.arguments.tensor("input")
    groups = context.arguments.integer("group" if "group" in context.parameters else "num_groups")
    if x is None or groups < 1 or len(context.dims(x)) < 2:
        return False
    draft, dims = context.draft, context.dims(x)
    inside = context.shapes.table.quotient(dims[1], number(groups))
    split = (dims[0], number(groups), inside, *dims[2:])
    grouped = draft.reshape(draft.fresh("grouped"), x, split)
    mean, centred, spread = moments(context, grouped, tuple(range(2, len(split))))
    rstd = _rstd(context, spread)
    scaled = draft.map(draft.fresh("unit"), context.dtype, "{0} * {1}", centred, rstd)
    flat = draft.reshape(draft.fresh("flat"), scaled, dims)
    weight, bias = (_per_channel(context, name, dims) for name in ("weight", "bias"))
    if context.node.outputs[0]:
        _scale_and_shift(context, flat, weight, bias)
    _statistics(context, mean, rstd)
    return True


def _scale_and_shift(context: Context, x: str, weight: str | None, bias: str | None) -> None:
    if weight and bias:
        context.emit("{0} * {1} + {2}", x, weight, bias)
    elif weight or bias:
        context.emit("{0} * {1}" if weight else "{0} + {1}", x, weight or bias or x)
    else:
        context.emit("{0}", x)


def _per_channel(context: Context, parameter: str, dims: tuple[Size, ...]) -> str | None:
    """A vector over dimension 1, shaped to broadcast."""
    name = context.arguments.tensor(parameter)
    if name is None:
        return None
    wide = tuple(dims[1] if axis == 1 else ONE for axis in range(len(dims)))
    return context.draft.reshape(context.draft.fresh(parameter), name, wide)


def _batch_norm(context: Context) -> bool:
    parameters = context.parameters
    x = context.arguments.tensor(parameters[0])
    if x is None or len(context.dims(x)) < 2:
        return False
    training = context.arguments.flag("training")
    if training and context.base in ("batch_norm", "native_batch_norm") and _has_statistics(context):
        return False
    return _batch_training(context, x) if training else _batch_evaluation(context, x)


def _has_statistics(context: Context) -> bool:
    return context.arguments.tensor("running_mean") is not None


def _batch_evaluation(context: Context, x: str) -> bool:
    draft, dims = context.draft, context.dims(x)
    mean, variance = (_per_channel(context, name, dims) for name in ("running_mean", "running_var"))
    if mean is None or variance is None or any(context.node.outputs[1:]):
        return False
    epsilon = literal(context.arguments.real("eps", 1e-5), context.dtype)
    rstd = draft.map(draft.fresh("rstd"), context.dtype, f"rsqrt@({{0}} + {epsilon})", variance)
    weight, bias = (_per_channel(context, name, dims) for name in ("weight", "bias"))
    scale = draft.map(draft.fresh("scale"), context.dtype, "{0} * {1}", rstd, weight) if weight else rstd
    centred = draft.map(draft.fresh("centred"), context.dtype, "{0} - {1}", x, mean)
    _scale_and_shift(context, centred, scale, bias)
    return True


def _batch_training(context: Context, x: str) -> bool:
    draft, dims = context.draft, context.dims(x)
    over: Dims = (0, *range(2, len(dims)))
    mean, centred, spread = moments(context, x, over)
    rstd = _rstd(context, spread)
    weight, bias = (_per_channel(context, name, dims) for name in ("weight", "bias"))
    scale = draft.map(draft.fresh("scale"), context.dtype, "{0} * {1}", rstd, weight) if weight else rstd
    if context.node.outputs[0]:
        _scale_and_shift(context, centred, scale, bias)
    _statistics(context, mean, rstd)
    if len(context.node.outputs) >= 5:
        _running(context, mean, spread, dims)
    return True


def _running(context: Context, mean: str, spread: str, dims: tuple[Size, ...]) -> None:
    """The statistics after this batch: `(1 - momentum) * old + momentum * new`, variance unbiased."""
    momentum = context.arguments.real("momentum", 0.1)
    draft = context.draft
    news = (("running_mean", mean, "{0}"), ("running_var", spread, "{0} / ((float)COUNT - 1.0f)"))
    for name, (parameter, fresh, text) in zip(context.node.outputs[3:5], news, strict=False):
        old = _per_channel(context, parameter, dims)
        if name is None or old is None:
            continue
        dtype = context.graph.values[name].dtype
        new = draft.map(draft.fresh("new"), dtype, text, fresh)
        mixed = draft.map(
            draft.fresh("mixed"),
            dtype,
            f"{literal(1.0 - momentum, dtype)} * {{0}} + {literal(momentum, dtype)} * {{1}}",
            old,
            new,
        )
        draft.reshape(name, mixed, context.dims(name))


def _instance_norm(context: Context) -> bool:
    x = context.arguments.tensor("input")
    if x is None or _has_statistics(context) or not context.arguments.flag("use_input_stats"):
        return False
    dims = context.dims(x)
    if len(dims) < 3:
        return False
    _, centred, spread = moments(context, x, tuple(range(2, len(dims))))
    weight, bias = (_per_channel(context, name, dims) for name in ("weight", "bias"))
    context.emit("{0}", _affine(context, centred, _rstd(context, spread), weight, bias))
    return True


_TABLE: dict[Lowering, str] = {
    _layer_norm: "layer_norm native_layer_norm",
    _rms_norm: "rms_norm _fused_rms_norm",
    _group_norm: "group_norm native_group_norm",
    _batch_norm: "batch_norm native_batch_norm _native_batch_norm_legit_functional "
    "_native_batch_norm_legit_no_training _native_batch_norm_legit",
    _instance_norm: "instance_norm",
}
for _lowering, _names in _TABLE.items():
    LOWERINGS.update(dict.fromkeys(_names.split(), _lowering))
