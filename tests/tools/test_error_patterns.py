"""The pattern of an output's errors in words: where they lie, what they have in common, and no pattern in noise."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from memory.records import DType
from tools.arrays import as_float64, numpy_dtype
from tools.devices.simulated_memory import POISON
from tools.error_patterns import describe_pattern, describe_places, describe_size, describe_values

Where = tuple[slice | list[int] | int, ...]
ALL = slice(None)
NAN, INF = np.nan, np.inf
FILLED = float(np.frombuffer(b"\xff" * 4, np.float32).astype(np.float64)[0])
"""What a float32 buffer holds before a run."""


def flags(shape: tuple[int, ...], *where: Where) -> NDArray[np.bool_]:
    wrong = np.zeros(shape, np.bool_)
    for place in where:
        wrong[place] = True
    return wrong


@pytest.mark.parametrize(
    ("shape", "where", "words"),
    [
        ((8, 32), [(ALL, ALL)], "every element"),
        ((8, 32), [(slice(-1, None), slice(20, None))], "only the tail, from flat index 244"),
        ((1000,), [(slice(999, None),)], "only the tail, from flat index 999"),
        ((1000,), [(slice(0, 128),)], "only the first 128, up to flat index 127"),
        ((1000,), [(slice(128, 256),)], "only flat indices 128 to 255"),
        ((1024,), [(slice(3, None, 32),)], "one flat index in 32, from 3"),
        ((8, 32), [(slice(0, None, 4), ALL)], "whole rows, only rows 0, 4 of 8"),
        ((96, 40), [(slice(31, None, 32), ALL)], "whole rows, one row in 32, from 31"),
        ((96, 40), [(slice(7, 9), ALL), (11, ALL)], "whole rows, only rows 7, 8, 11 of 96"),
        ((8, 32), [(ALL, slice(4, 6))], "only columns 4 to 5 of 32"),
        ((8, 100), [(ALL, slice(96, None))], "only the last 4 of 100 columns, from 96"),
        ((100, 100), [(slice(0, 90), slice(0, 32))], "only the first 90 of 100 rows, only the first 32 of 100 columns"),
        ((64, 256), [(ALL, slice(31, None, 32))], "one column in 32, from 31"),
        ((33, 40), [(7, 9)], ""),
        ((4, 6, 50), [(ALL, 2, ALL)], "whole rows, one row in 6, from 2"),
        ((4, 6, 50), [(ALL, 2, slice(0, 40))], "only dim-1 index 2 of 6, only the first 40 of 50 columns"),
    ],
)  # fmt: skip
def test_where_the_errors_lie_is_named(shape: tuple[int, ...], where: list[Where], words: str) -> None:
    assert describe_places(flags(shape, *where)) == words


def test_one_lane_is_found_where_rows_are_no_multiple_of_a_warp() -> None:
    wrong = np.zeros(33 * 40, np.bool_)
    wrong[0::32] = True
    # Half of them are right all the same, because zero is right whatever the factor.
    wrong[0::64] = False
    assert describe_places(wrong.reshape(33, 40)) == "one flat index in 64, from 32"
    wrong[64 * 5] = True
    assert describe_places(wrong.reshape(33, 40)) == "one flat index in 32, from 0 (22 of 42 such)"


def test_half_a_warp_is_found() -> None:
    wrong = (np.arange(4096) % 32 >= 16).reshape(8, 512)
    assert describe_places(wrong) == "only where column % 32 is 16 to 31"


@given(
    seed=st.integers(0, 10_000),
    shape=st.sampled_from([(1320,), (33, 40), (96, 100), (8, 8, 16), (2000, 3)]),
    count=st.integers(1, 400),
)
def test_what_is_said_of_random_places_holds_for_them(seed: int, shape: tuple[int, ...], count: int) -> None:
    wrong = np.zeros(int(np.prod(shape)), np.bool_)
    wrong[np.random.default_rng(seed).choice(wrong.size, min(count, wrong.size), replace=False)] = True
    words = describe_places(wrong.reshape(shape))
    if count > 5:
        assert " in " not in words and "whole" not in words, words
    assert len(words) < 160


@pytest.mark.parametrize(
    ("got", "expected", "words"),
    [
        ([1.5, 3.0, -6.0], [1.0, 2.0, -4.0], "each is 1.5 times what is expected"),
        ([-1.0, -2.0, 4.0], [1.0, 2.0, -4.0], "each has the wrong sign"),
        ([1.25, 2.25, -3.75], [1.0, 2.0, -4.0], "each is off by +0.25"),
        ([0.0, 0.0, 0.0], [1.0, 2.0, -4.0], "all of them 0"),
        ([1.0, 7.0, -4.5], [1.5, 2.0, -4.0], ""),
        ([0.0], [NAN], "NaN is expected in all of them"),
        ([0.0, 1.0], [INF, -INF], "an infinity is expected in all of them"),
        ([0.0, 1.0], [INF, NAN], "NaN or an infinity is expected in all of them"),
        ([FILLED, FILLED], [1.0, 2.0], "never written, or computed from what never was"),
        ([NAN, -NAN], [1.0, 2.0], "computed: an overflow on the way"),
        ([NAN, FILLED], [1.0, 2.0], "some never written"),
        ([INF, INF], [1.0, 2.0], "all of them infinite"),
        ([INF, NAN], [1.0, 2.0], "all of them NaN or infinite"),
        ([1.0, NAN], [0.0, 2.0], "50% of them NaN"),
    ],
)
def test_what_the_values_have_in_common_is_named(got: list[float], expected: list[float], words: str) -> None:
    said = describe_values(np.array(got), np.array(expected))
    assert words in said and bool(words) == bool(said)


def test_a_factor_is_seen_through_the_rounding_of_half_precision() -> None:
    expected = np.random.default_rng(1).standard_normal(500) + 0.01
    got = (expected * 0.75).astype(np.float16).astype(np.float64)
    assert re.fullmatch(
        r"each is 0\.(75|7499\d?|7500\d) times what is expected", describe_values(got, expected)
    )


def test_a_pattern_is_one_line_with_the_share() -> None:
    wrong = flags((96, 40), (slice(31, None, 32), ALL))
    got = np.full(int(wrong.sum()), FILLED)
    said = describe_pattern(wrong, got, np.ones_like(got))
    assert said.startswith(
        "120 of 3,840 elements are wrong: whole rows, one row in 32, from 31; all of them NaN"
    )
    assert "\n" not in said


def test_an_output_of_one_number_has_no_place() -> None:
    assert (
        describe_pattern(np.array(True), np.array([1.0]), np.array([2.0]))
        == "1 of 1 elements is wrong: every element"
    )


@pytest.mark.parametrize("dtype", [DType.F64, DType.F32, DType.F16, DType.BF16])
def test_what_a_buffer_is_filled_with_is_known_in_every_floating_type(dtype: DType) -> None:
    filled = np.frombuffer(bytes([POISON]) * 24, numpy_dtype(dtype))
    assert "never written, or" in describe_values(as_float64(filled, dtype), np.ones(filled.size))
    computed = np.full(3, np.nan) - np.full(3, np.inf)
    assert "computed" in describe_values(computed, np.ones(3))


def test_only_a_small_error_is_called_rounding() -> None:
    assert "rounding" in describe_size(2e-6)
    assert describe_size(0.1) == describe_size(None) == ""
