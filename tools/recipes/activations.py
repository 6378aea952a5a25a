"""Lowerings of elementwise operations with parameters: activations, clamps, selections, casts and fills."""

from __future__ import annotations

from memory.records import DType, SpecialArgument
from tools.recipes.lowering import LOWERINGS, Context, Lowering
from tools.recipes.micro import Fill, fit, literal
from tools.recipes.sizes import ONE


def _real(context: Context, name: str, default: float) -> str:
    return literal(context.arguments.real(name, default), context.dtype)


def _self(context: Context) -> str | None:
    return context.operand(context.parameters[0], context.dtype)


def _leaky_relu(context: Context) -> bool:
    x = _self(context)
    if x:
        context.emit(f"{{0}} > 0 ? {{0}} : {{0}} * {_real(context, 'negative_slope', 0.01)}", x)
    return x is not None


def _elu(context: Context) -> bool:
    x = _self(context)
    if not x or not context.dtype.is_floating:
        return False
    alpha, scale = context.arguments.real("alpha", 1.0), context.arguments.real("scale", 1.0)
    inner = context.arguments.real("input_scale", 1.0)
    if context.base == "celu":
        inner = 1.0 / alpha
    low, up = literal(alpha * scale, context.dtype), literal(scale, context.dtype)
    inside = "{0}" if inner == 1.0 else f"{{0}} * {literal(inner, context.dtype)}"
    positive = "{0}" if scale == 1.0 else f"{{0}} * {up}"
    context.emit(f"{{0}} > 0.0L ? {positive} : {low} * expm1@({inside})", x)
    return True


def _clamp(context: Context) -> bool:
    x = _self(context)
    names = {"hardtanh": ("min_val", "max_val")}.get(context.base, ("min", "max"))
    if not x:
        return False
    if context.base == "hardtanh" and context.arguments.get("min_val") is None:
        return False
    low, high = (context.operand(name, context.dtype) for name in names)
    if low and high:
        low_done = context.draft.map(
            context.draft.fresh("low"), context.dtype, "{0} < {1} ? {1} : {0}", x, low
        )
        context.emit("{0} > {1} ? {1} : {0}", low_done, high)
    elif low:
        context.emit("{0} < {1} ? {1} : {0}", x, low)
    elif high:
        context.emit("{0} > {1} ? {1} : {0}", x, high)
    else:
        return False
    return True


def _softplus(context: Context) -> bool:
    x = _self(context)
    if x:
        beta, threshold = _real(context, "beta", 1.0), _real(context, "threshold", 20.0)
        scaled = context.draft.map(context.draft.fresh("scaled"), context.dtype, f"{{0}} * {beta}", x)
        context.emit(f"{{1}} > {threshold} ? {{0}} : log1p@(exp@({{1}})) / {beta}", x, scaled)
    return x is not None


def _gelu(context: Context) -> bool:
    x = _self(context)
    if not x:
        return False
    if context.arguments.text("approximate", "none") == "none":
        context.emit("{0} * 0.5L * (1.0L + erf@({0} * 0.7071067811865476L))", x)
        return True
    inner = context.draft.map(
        context.draft.fresh("inner"),
        context.dtype,
        "0.7978845608028654L * ({0} + 0.044715L * {0} * {0} * {0})",
        x,
    )
    context.emit("0.5L * {0} * (1.0L + tanh@({1}))", x, inner)
    return True


def _threshold(context: Context) -> bool:
    x = _self(context)
    if x:
        limit, value = _real(context, "threshold", 0.0), _real(context, "value", 0.0)
        context.emit(f"{{0}} <= {limit} ? {value} : {{0}}", x)
    return x is not None


def _shrink(context: Context) -> bool:
    x = _self(context)
    if not x:
        return False
    lambd = _real(context, "lambd", 0.5)
    if context.base == "hardshrink":
        context.emit(f"({{0}} >= -{lambd} && {{0}} <= {lambd}) ? 0.0L : {{0}}", x)
    else:
        context.emit(
            f"{{0}} > {lambd} ? {{0}} - {lambd} : ({{0}} < -{lambd} ? {{0}} + {lambd} : {{0}} * 0.0L)", x
        )
    return True


def _where(context: Context) -> bool:
    condition = context.arguments.tensor("condition")
    left = context.operand("self", context.dtype)
    right = context.operand("other", context.dtype)
    if not condition or not left or not right:
        return False
    _choose(context, condition, left, right)
    return True


def _choose(context: Context, condition: str, yes: str, no: str) -> None:
    yes, no = (_converted(context, name) for name in (yes, no))
    context.draft.raw(context.output, context.dtype, "{0} ? {1} : {2}", condition, yes, no)


def _converted(context: Context, name: str) -> str:
    """`name` in the result's type, so that both branches of a choice have one type."""
    if context.draft.dtypes[name] == context.dtype:
        return name
    return context.draft.map(context.draft.fresh("cast"), context.dtype, "{0}", name)


def _masked_fill(context: Context) -> bool:
    x, mask = context.arguments.tensor("self"), context.arguments.tensor("mask")
    value = context.operand("value", context.dtype)
    if not x or not mask or not value:
        return False
    _choose(context, mask, value, x)
    return True


def _lerp(context: Context) -> bool:
    start, end = (context.operand(name, context.dtype) for name in ("self", "end"))
    weight = context.operand("weight", context.dtype)
    if not start or not end or not weight:
        return False
    text = "fabs@({2}) < 0.5L ? {0} + {2} * ({1} - {0}) : {1} - ({1} - {0}) * (1.0L - {2})"
    context.emit(text, start, end, weight)
    return True


def _addc(context: Context) -> bool:
    names = [context.operand(name, context.dtype) for name in ("self", "tensor1", "tensor2")]
    if not all(names):
        return False
    value = context.arguments.real("value", 1.0)
    scale = "" if value == 1.0 else f"{literal(value, context.dtype)} * "
    sign = "*" if context.base == "addcmul" else "/"
    context.emit(f"{{0}} + {scale}({{1}} {sign} {{2}})", *(name for name in names if name))
    return True


def _prelu(context: Context) -> bool:
    x, weight = context.arguments.tensor("self"), context.arguments.tensor("weight")
    if not x or not weight:
        return False
    dims, slopes = context.dims(x), context.dims(weight)
    if len(dims) > 1 and slopes and slopes[0].value != 1:
        wide = tuple(slopes[0] if axis == 1 else ONE for axis in range(len(dims)))
        weight = context.draft.reshape(context.draft.fresh("slope"), weight, wide)
    elif len(slopes) > len(dims):
        return False
    context.emit("{0} > 0.0L ? {0} : {1} * {0}", x, weight)
    return True


def _cast(context: Context) -> bool:
    x = context.arguments.tensor(context.parameters[0])
    if not x:
        return False
    before, after = context.draft.dtypes[x], context.dtype
    text = {DType.BOOL: "{0} != 0"}.get(after, "{0}") if before is not DType.BOOL else "{0}"
    if after is DType.F16 and before is not DType.F16:
        text = "__half2float(__float2half_rn({0}))"  # an explicit cast rounds even where nothing is stored
    elif after is DType.BF16 and before is not DType.BF16:
        text = "__bfloat162float(__float2bfloat16_rn({0}))"
    if after is DType.BOOL:
        context.draft.raw(context.output, after, text, x)
    else:
        context.emit(text, x)
    return True


def _fill(context: Context) -> bool:
    constants = {"zeros": 0, "zeros_like": 0, "new_zeros": 0, "ones": 1, "ones_like": 1, "new_ones": 1}
    named = next((n for n in ("fill_value", "value", "s") if n in context.parameters), "")
    value = constants.get(context.base, context.arguments.get(named))
    if isinstance(value, SpecialArgument):
        value = float(value.float) if value.float is not None else None
    if not isinstance(value, int | float):
        return False
    text = fit(literal(value, context.dtype), context.dtype)
    context.draft.ops.append(Fill(context.output, context.dtype, text, context.dims(context.output)))
    return True


_TABLE: dict[Lowering, str] = {
    _leaky_relu: "leaky_relu",
    _elu: "elu celu",
    _clamp: "clamp clip hardtanh",
    _softplus: "softplus",
    _gelu: "gelu",
    _threshold: "threshold",
    _shrink: "hardshrink softshrink",
    _where: "where",
    _masked_fill: "masked_fill",
    _lerp: "lerp",
    _addc: "addcmul addcdiv",
    _prelu: "prelu",
    _cast: "_to_copy to type_as",
    _fill: "full full_like ones ones_like zeros zeros_like new_full new_ones new_zeros scalar_tensor fill",
}
for _lowering, _names in _TABLE.items():
    LOWERINGS.update(dict.fromkeys(_names.split(), _lowering))
