"""C++ for every elementwise ATen operation: one scalar in, one scalar out, with PyTorch's NaN rules.

Templates: `{0}` is an operand, `exp@(` is expf or exp, `1.0L` is 1.0f or 1.0. Comparisons are written so that a NaN
falls through to where PyTorch puts it: `x < lo ? lo : x` keeps a NaN, `fmaxf` would lose it.
"""

from __future__ import annotations

FLOAT_UNARY: dict[str, str] = {
    "exp": "exp@({0})",
    "exp2": "exp2@({0})",
    "expm1": "expm1@({0})",
    "log": "log@({0})",
    "log2": "log2@({0})",
    "log10": "log10@({0})",
    "log1p": "log1p@({0})",
    "sqrt": "sqrt@({0})",
    "rsqrt": "rsqrt@({0})",
    "sin": "sin@({0})",
    "cos": "cos@({0})",
    "tan": "tan@({0})",
    "asin": "asin@({0})",
    "acos": "acos@({0})",
    "atan": "atan@({0})",
    "sinh": "sinh@({0})",
    "cosh": "cosh@({0})",
    "tanh": "tanh@({0})",
    "asinh": "asinh@({0})",
    "acosh": "acosh@({0})",
    "atanh": "atanh@({0})",
    "erf": "erf@({0})",
    "erfc": "erfc@({0})",
    "sigmoid": "1.0L / (1.0L + exp@(-{0}))",
    "reciprocal": "1.0L / {0}",
    "silu": "{0} / (1.0L + exp@(-{0}))",
    "mish": "{0} * tanh@(log1p@(exp@({0})))",
    "log_sigmoid": "({0} < 0.0L ? {0} : 0.0L) - log1p@(exp@(-fabs@({0})))",
    "hardsigmoid": "({0} + 3.0L < 0.0L ? 0.0L : ({0} + 3.0L > 6.0L ? 6.0L : {0} + 3.0L)) * 0.16666666666666666L",
    "hardswish": "{0} * ({0} + 3.0L < 0.0L ? 0.0L : ({0} + 3.0L > 6.0L ? 6.0L : {0} + 3.0L)) * 0.16666666666666666L",
    "selu": "{0} > 0.0L ? 1.0507009873554805L * {0} : 1.7580993408473766L * expm1@({0})",
    "deg2rad": "{0} * 0.017453292519943295L",
    "rad2deg": "{0} * 57.29577951308232L",
}
"""One floating operand; integer operands are converted first, as PyTorch does."""

ROUNDING: dict[str, str] = {
    "floor": "floor@({0})",
    "ceil": "ceil@({0})",
    "trunc": "trunc@({0})",
    "fix": "trunc@({0})",
    "round": "rint@({0})",
    "frac": "{0} - trunc@({0})",
}
"""Identity on integers."""

ANY_UNARY: dict[str, str] = {
    "neg": "-{0}",
    "negative": "-{0}",
    "abs": "{0} < 0 ? -{0} : {0}",
    "relu": "{0} < 0 ? 0 : {0}",
    "relu6": "{0} < 0 ? 0 : ({0} > 6 ? 6 : {0})",
    "square": "{0} * {0}",
    "sign": "({0} > 0) - ({0} < 0)",
    "sgn": "({0} > 0) - ({0} < 0)",
    "positive": "{0}",
    "bitwise_not": "~{0}",
}
"""One operand of any number type."""

IDENTITY = frozenset(
    "clone alias detach lift_fresh_copy lift_fresh contiguous positive dropout feature_dropout alpha_dropout "
    "native_dropout".split()
)
"""Copies. Dropout counts only in evaluation mode, which the lowering checks."""

PREDICATES: dict[str, str] = {
    "isnan": "{0} != {0}",
    "isinf": "fabs@({0}) == INF",
    "isfinite": "fabs@({0}) < INF",
    "logical_not": "!{0}",
}
"""Operand of any type, boolean result."""

COMPARISONS: dict[str, str] = {
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
    "greater": "{0} > {1}",
    "greater_equal": "{0} >= {1}",
    "less": "{0} < {1}",
    "less_equal": "{0} <= {1}",
    "logical_and": "{0} && {1}",
    "logical_or": "{0} || {1}",
    "logical_xor": "!{0} != !{1}",
}
"""Two operands compared in their common type, boolean result."""

BINARY: dict[str, str] = {
    "mul": "{0} * {1}",
    "multiply": "{0} * {1}",
    "maximum": "({0} > {1} || {0} != {0}) ? {0} : {1}",
    "minimum": "({0} < {1} || {0} != {0}) ? {0} : {1}",
    "max": "({0} > {1} || {0} != {0}) ? {0} : {1}",
    "min": "({0} < {1} || {0} != {0}) ? {0} : {1}",
    "clamp_min": "{0} < {1} ? {1} : {0}",
    "clamp_max": "{0} > {1} ? {1} : {0}",
    "bitwise_and": "{0} & {1}",
    "bitwise_or": "{0} | {1}",
    "bitwise_xor": "{0} ^ {1}",
}
"""Two operands of any number type, in the result's type."""

FLOAT_BINARY: dict[str, str] = {
    "atan2": "atan2@({0}, {1})",
    "hypot": "hypot@({0}, {1})",
    "copysign": "copysign@({0}, {1})",
    "fmod": "fmod@({0}, {1})",
    "fmax": "fmax@({0}, {1})",
    "fmin": "fmin@({0}, {1})",
    "true_divide": "{0} / {1}",
    "xlogy": "{1} != {1} ? {1} : ({0} == 0.0L ? 0.0L : {0} * log@({1}))",
    "_prelu_kernel": "{0} > 0.0L ? {0} : {1} * {0}",
}
"""Two floating operands."""

REMAINDER = "{2} != 0.0L && ({2} < 0.0L) != ({1} < 0.0L) ? {2} + {1} : {2}"
"""Python's sign rule, from the C remainder {2}: the result has the divisor's sign."""

EXPENSIVE = ("exp", "log", "tanh", "erf", "pow", "sin", "cos", "tan", "fmod", "sqrt", "hypot", "/")
"""A text that contains one of these is worth keeping rather than computing twice."""


def is_cheap(text: str) -> bool:
    """True for a few additions, multiplications and comparisons."""
    return not any(word in text for word in EXPENSIVE)
