"""Input distributions: deterministic, finite, and of the promised form."""

from __future__ import annotations

import numpy as np
import pytest

from memory.records import DType
from tools.inputs import Distribution, draw_floats, draw_integers

DRAWN = [d for d in Distribution if d is not Distribution.AUTHOR]


@pytest.mark.parametrize("distribution", DRAWN)
@pytest.mark.parametrize("dtype", [DType.F64, DType.F32, DType.F16, DType.BF16])
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (64, 96)])
def test_draws_repeat_fit_the_shape_and_stay_finite_in_the_dtype(
    distribution: Distribution, dtype: DType, shape: tuple[int, ...]
) -> None:
    first, second = (draw_floats(shape, dtype, distribution, np.random.default_rng(3)) for _ in range(2))
    assert first.shape == shape and np.array_equal(first, second, equal_nan=True)
    assert first.dtype == (np.float64 if dtype is DType.F64 else np.float32)
    narrow = first.astype(np.float16) if dtype is DType.F16 else first
    assert np.isfinite(narrow).all() or distribution is Distribution.SPECIAL


def draw(distribution: Distribution) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return draw_floats((200, 300), DType.F32, distribution, np.random.default_rng(0)).astype(np.float64)


def test_each_distribution_has_its_own_form() -> None:
    assert np.abs(draw(Distribution.UNIFORM)).max() <= 1
    assert np.abs(draw(Distribution.LARGE)).max() > 1000
    assert np.abs(draw(Distribution.TINY)).max() < 1e-3
    assert 0.45 < (draw(Distribution.ZEROS_MIXED) == 0).mean() < 0.55
    assert (np.diff(draw(Distribution.SORTED), axis=-1) >= 0).all()
    assert (np.ptp(draw(Distribution.CONSTANT_ROWS), axis=-1) == 0).all()
    special = draw(Distribution.SPECIAL)
    assert np.isnan(special).any() and np.isposinf(special).any() and np.isneginf(special).any()
    assert ((special != 0) & (np.abs(special) < 1e-38)).any()
    signs = draw(Distribution.NORMAL) > 0
    assert 0.45 < signs.mean() < 0.55


def test_integers_stay_within_their_bounds_both_included() -> None:
    drawn = draw_integers((1000,), DType.I32, (3, 5), np.random.default_rng(0))
    assert drawn.dtype == np.int32 and set(drawn.tolist()) == {3, 4, 5}
    tossed = draw_integers((1000,), DType.BOOL, (0, 1), np.random.default_rng(0))
    assert tossed.dtype == np.bool_ and 0.4 < tossed.mean() < 0.6


def test_the_authors_inputs_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="get_inputs"):
        draw_floats((2,), DType.F32, Distribution.AUTHOR, np.random.default_rng(0))
