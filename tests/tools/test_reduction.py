"""The search for a smaller twin's shapes."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from memory.records import DType, TensorSpec
from tools.reduction import Shapes, resized, shrink, smaller_size


def elements(shapes: Shapes) -> int:
    return sum(math.prod(shape) for shape in shapes)


def anything(shapes: Shapes) -> bool:
    return bool(shapes)


def nothing(shapes: Shapes) -> bool:
    return not shapes


def test_equal_sizes_shrink_together_so_that_a_product_still_fits() -> None:
    def measure(shapes: Shapes) -> int | None:
        return elements(shapes) if shapes[0][1] == shapes[1][0] else None

    assert shrink(((64, 64), (64, 64)), limit=600, measure=measure, accepts=anything) == ((16, 16), (16, 16))


def test_a_size_that_weights_fix_stays_and_the_batch_shrinks() -> None:
    def measure(shapes: Shapes) -> int | None:
        return elements(shapes) if shapes[0][1] == 1024 else None

    assert shrink(((1024, 1024),), limit=5000, measure=measure, accepts=anything) == ((4, 1024),)


def test_a_change_that_alters_the_operations_is_not_taken() -> None:
    assert shrink(((64, 8),), limit=10, measure=elements, accepts=nothing) is None


def test_nothing_is_done_below_the_limit() -> None:
    assert shrink(((64, 8),), limit=512, measure=elements, accepts=anything) is None


@given(st.integers(0, 1 << 20))
def test_a_smaller_size_keeps_parity_or_is_half(size: int) -> None:
    smaller = smaller_size(size)
    assert smaller is None or (2 <= smaller < size and (smaller * 2 == size or smaller % 2 == size % 2 == 1))


@given(st.lists(st.lists(st.integers(1, 300), max_size=3), min_size=1, max_size=3), st.integers(1, 1000))
def test_a_twin_is_smaller_and_no_size_falls_below_two(raw: list[list[int]], limit: int) -> None:
    shapes = tuple(tuple(shape) for shape in raw)
    found = shrink(shapes, limit=limit, measure=elements, accepts=anything)
    if found is not None:
        assert elements(found) < elements(shapes)
        before = [size for shape in shapes for size in shape]
        after = [size for shape in found for size in shape]
        assert all(new == old or 2 <= new < old for old, new in zip(before, after, strict=True))


def test_the_order_of_dimensions_in_memory_survives() -> None:
    transposed = TensorSpec(shape=(64, 128), dtype=DType.F32, strides=(1, 64))
    assert resized(transposed, (8, 128)).strides == (1, 8)
    expanded = TensorSpec(shape=(64, 128), dtype=DType.F32, strides=(1, 0))
    assert resized(expanded, (8, 128)).strides == (1, 0)
    assert resized(TensorSpec.dense((4, 6), DType.F32), (2, 6)) == TensorSpec.dense((2, 6), DType.F32)
