"""Distributions that trial inputs are drawn from. Pure: NumPy generators in, arrays out; no torch.

Invariant: the same generator state, shape and dtype give the same values on any machine.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from memory.records import DType

Floats = NDArray[np.float32] | NDArray[np.float64]


SPECIAL_VALUES = (float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1e-40, -1e-40)
"""What SPECIAL sprinkles in; 1e-40 is a denormal in f32 and bf16, and zero in f16."""


class Distribution(StrEnum):
    """How floating inputs are drawn. Integers stay within the range of the author's own sample in all of them."""

    AUTHOR = "author"
    """What the file's `get_inputs()` returns; NORMAL where shapes alone were given."""
    NORMAL = "normal"
    UNIFORM = "uniform"
    """-1 to 1."""
    LARGE = "large"
    """Normal times 100, one element in 64 another 10 times larger and one in 4,096 100 times; in f16 a tenth and no
    hundreds, to stay finite."""
    TINY = "tiny"
    """Normal times 1e-4."""
    ZEROS_MIXED = "zeros_mixed"
    """Normal, a random half exactly zero."""
    SORTED = "sorted"
    """Normal, ascending along the last dimension."""
    SPECIAL = "special"
    """Normal with a few NaN, infinities, signed zeros and denormals (one element in 4,096 of each, at least one)."""
    CONSTANT_ROWS = "constant_rows"
    """One normal value repeated along the last dimension."""


def draw_floats(
    shape: tuple[int, ...], dtype: DType, distribution: Distribution, generator: np.random.Generator
) -> Floats:
    """Draw floating values, in f64 for f64 and in f32 for the narrower dtypes.

    Raises: ValueError for AUTHOR, which only the user's file can draw.
    """
    if distribution is Distribution.AUTHOR:
        raise ValueError("the author's inputs come from get_inputs(), not from a generator")
    if distribution is Distribution.CONSTANT_ROWS and shape:
        row = _normal((*shape[:-1], 1), dtype, generator)
        return np.ascontiguousarray(np.broadcast_to(row, shape))
    if distribution is Distribution.UNIFORM:
        values = _array(generator.random(shape, dtype=_working(dtype)), dtype)
        values *= 2
        values -= 1
        return values
    values = _normal(shape, dtype, generator)
    if distribution is Distribution.LARGE:
        heavy = generator.random(shape, dtype=np.float32) < 1 / 64
        values *= 10 if dtype is DType.F16 else 100
        np.multiply(values, 10, out=values, where=heavy)
        if dtype is not DType.F16:
            heavier = generator.random(shape, dtype=np.float32) < 1 / 4096
            np.multiply(values, 10, out=values, where=heavier)
    elif distribution is Distribution.TINY:
        values *= 1e-4
    elif distribution is Distribution.ZEROS_MIXED:
        values[generator.random(shape, dtype=np.float32) < 0.5] = 0
    elif distribution is Distribution.SPECIAL and values.size:
        count = max(1, values.size // 4096)
        for value in SPECIAL_VALUES:
            values.flat[generator.integers(0, values.size, size=count)] = value
    elif distribution is Distribution.SORTED and shape:
        values.sort(axis=-1)
    return values


def draw_integers(
    shape: tuple[int, ...], dtype: DType, bounds: tuple[int, int], generator: np.random.Generator
) -> NDArray[np.integer] | NDArray[np.bool_]:
    """Draw integers from `bounds`, both included; for bool, fair coin tosses."""
    if dtype is DType.BOOL:
        return np.asarray(generator.random(shape, dtype=np.float32) < 0.5)
    low, high = bounds
    drawn = generator.integers(low, high, size=shape, dtype=np.int64, endpoint=True)
    return np.asarray(drawn, dtype=_INTEGERS[dtype])


_INTEGERS = {
    DType.I64: np.int64,
    DType.I32: np.int32,
    DType.I16: np.int16,
    DType.I8: np.int8,
    DType.U8: np.uint8,
}


def _working(dtype: DType) -> type[np.float64] | type[np.float32]:
    return np.float64 if dtype is DType.F64 else np.float32


def _normal(shape: tuple[int, ...], dtype: DType, generator: np.random.Generator) -> Floats:
    return _array(generator.standard_normal(shape, dtype=_working(dtype)), dtype)


def _array(drawn: object, dtype: DType) -> Floats:
    # A rank-0 draw is a scalar, which could not be changed in place.
    return np.asarray(drawn, dtype=np.float64) if dtype is DType.F64 else np.asarray(drawn, dtype=np.float32)
