"""The comparison rule: what passes, what fails, and what it says about a failure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from memory.records import DType
from tools.arrays import Array
from tools.correctness import Comparison, Subject, Tolerance, compare

RULE = Tolerance()


def judge(mine: Array, oracle: NDArray[np.float64], eager: Array | None = None) -> Comparison:
    eager = oracle.astype(np.float32) if eager is None else eager
    return compare(mine, Subject("out", "normal", DType.F32, oracle, eager), RULE)


def values(seed: int = 0, shape: tuple[int, ...] = (8, 32)) -> NDArray[np.float64]:
    return np.random.default_rng(seed).standard_normal(shape)


def test_rounding_to_the_outputs_own_precision_passes() -> None:
    oracle = values()
    assert judge(oracle.astype(np.float32), oracle).complaint is None


def test_twice_eagers_error_passes_and_more_does_not() -> None:
    oracle = values()
    eager = (oracle * (1 + 1e-4)).astype(np.float32)
    assert judge((oracle * (1 + 1.9e-4)).astype(np.float32), oracle, eager).complaint is None
    assert judge((oracle * (1 + 2.2e-4)).astype(np.float32), oracle, eager).complaint is not None


def test_an_error_beyond_the_tolerance_fails_however_large_the_output_is() -> None:
    oracle = values() * 1e6
    mine = oracle.astype(np.float32)
    mine[3, 4] *= 1 + 1e-4
    complaint = judge(mine, oracle).complaint
    assert complaint is not None
    assert "out[3, 4]" in complaint.message


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_element_that_is_no_number_fails(bad: float) -> None:
    oracle = values()
    mine = oracle.astype(np.float32)
    mine[0, 5] = bad
    comparison = judge(mine, oracle)
    assert comparison.complaint is not None
    assert comparison.record.error is None


def test_nan_and_infinity_pass_where_the_oracle_has_them() -> None:
    oracle = values()
    oracle[0, 0], oracle[1, 1] = np.nan, np.inf
    assert judge(oracle.astype(np.float32), oracle).complaint is None


def test_a_number_fails_where_the_oracle_has_nan() -> None:
    oracle = values()
    oracle[2, 2] = np.nan
    mine = oracle.astype(np.float32)
    mine[2, 2] = 1.0
    assert judge(mine, oracle).complaint is not None


def test_where_eager_overflows_the_candidate_may_overflow_or_be_right_but_not_be_wrong() -> None:
    oracle = values()
    oracle[0, 0] = 1e30
    eager = oracle.astype(np.float32)
    eager[0, 0] = np.inf
    for answer, passes in ((np.inf, True), (1e30, True), (5.0, False)):
        mine = oracle.astype(np.float32)
        mine[0, 0] = answer
        assert (judge(mine, oracle, eager).complaint is None) is passes, answer


def test_all_zeros_do_not_pass_for_an_output_that_is_not_zero() -> None:
    oracle = values() * 1e-12
    assert judge(np.zeros_like(oracle, dtype=np.float32), oracle).complaint is not None


def test_an_output_of_zeros_is_judged_absolutely() -> None:
    oracle = np.zeros((4, 4))
    assert judge(np.zeros((4, 4), np.float32), oracle).complaint is None
    assert judge(np.full((4, 4), 1e-3, np.float32), oracle).complaint is not None


def test_a_softmax_of_large_inputs_is_judged_by_the_values_that_its_dtype_can_hold() -> None:
    oracle = np.full((4, 64), 1e-300)
    oracle[:, 5] = 1.0
    right = oracle.astype(np.float32)
    assert judge(right, oracle).complaint is None
    assert judge(np.zeros_like(right), oracle).complaint is not None
    assert judge(right / 2, oracle).complaint is not None


def test_an_output_that_its_dtype_cannot_hold_at_all_may_be_zero() -> None:
    oracle = np.full((4, 8), 1e-300)
    assert judge(oracle.astype(np.float32), oracle).complaint is None


def test_integers_must_equal_the_oracle_or_eager() -> None:
    oracle, eager = np.array([1, 2, 3]), np.array([1, 2, 4])
    subject = Subject("index", "normal", DType.I64, oracle, eager)
    assert compare(np.array([1, 2, 4]), subject, RULE).complaint is None
    assert compare(np.array([1, 2, 5]), subject, RULE).complaint is not None


def test_bf16_bit_patterns_are_read_as_their_values() -> None:
    oracle = np.array([1.0, -2.5])
    bits = (oracle.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    assert compare(bits, Subject("o", "normal", DType.BF16, oracle, bits), RULE).complaint is None


def test_an_empty_output_passes() -> None:
    assert judge(np.zeros((0, 4), np.float32), np.zeros((0, 4))).complaint is None


def test_a_complaint_names_the_worst_element_what_is_expected_and_the_pattern() -> None:
    oracle = values() + 3.0
    mine = oracle.astype(np.float32)
    mine[:, 5] *= 1.5
    mine[3, 5] = 40.0
    complaint = judge(mine, oracle).complaint
    assert complaint is not None
    assert f"out[3, 5] is 40, expected {oracle[3, 5]:.9g} (normal inputs)" in complaint.message
    assert "8 of 256 elements are wrong: only column 5 of 32" in complaint.message


@given(st.integers(0, 2**31), st.integers(0, 255), st.floats(1e-4, 1e6))
def test_a_single_wrong_element_never_hides(seed: int, at: int, by: float) -> None:
    oracle = values(seed)
    mine = oracle.astype(np.float32)
    mine.flat[at] += np.float32(by)
    assert judge(mine, oracle).complaint is not None
