"""The comparison on tensors gives the verdict of the comparison on arrays."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from memory.records import DType
from tools import tensor_compare
from tools.arrays import array_from, torch_dtype
from tools.correctness import Comparison, Subject, Tolerance, compare
from tools.tensor_compare import TensorSubject, compare_tensors, largest_error

RULE = Tolerance()
SPECIALS = (0.0, 1.0, float("nan"), float("inf"), float("-inf"))


def both(
    mine: torch.Tensor, oracle: torch.Tensor, eager: torch.Tensor, dtype: DType
) -> tuple[Comparison, Comparison]:
    here = compare_tensors(mine, TensorSubject("out", "normal", oracle, eager, dtype), RULE)
    subject = Subject("out", "normal", dtype, array_from(oracle), array_from(eager))
    return here, compare(array_from(mine), subject, RULE)


def agree(here: Comparison, there: Comparison) -> None:
    assert (here.complaint is None) == (there.complaint is None), (here, there)
    assert here.record.eager_error == pytest.approx(there.record.eager_error, rel=1e-9, abs=1e-300)
    assert here.record.allowed == pytest.approx(there.record.allowed, rel=1e-9)
    assert (here.record.error is None) == (there.record.error is None)
    if here.record.error is not None:
        assert here.record.error == pytest.approx(there.record.error, rel=1e-9, abs=1e-300)


@given(
    seed=st.integers(0, 10_000),
    dtype=st.sampled_from([DType.F32, DType.F64, DType.BF16, DType.F16]),
    count=st.integers(0, 300),
    noise=st.sampled_from([0.0, 1e-7, 3e-7, 1e-6, 3e-6, 1e-3, 1.0]),
    specials=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 299), st.sampled_from(SPECIALS)), max_size=6
    ),
    scale=st.sampled_from([1.0, 0.0, 1e-20, 1e6]),
)
def test_both_comparisons_give_one_verdict(
    seed: int, dtype: DType, count: int, noise: float, specials: list[tuple[int, int, float]], scale: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    oracle = torch.randn(count, generator=generator, dtype=torch.float64) ** 3 * scale
    eager = oracle.to(torch_dtype(dtype))
    mine = (oracle * (1 + noise * torch.randn(count, generator=generator, dtype=torch.float64))).to(
        eager.dtype
    )
    tensors = (mine, oracle, eager)
    for which, at, value in specials:
        if at < count:
            tensors[which][at] = value
    agree(*both(*tensors, dtype))


@given(seed=st.integers(0, 1000), changed=st.integers(0, 3))
def test_integers_must_be_the_oracles_or_eagers(seed: int, changed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    oracle = torch.randint(0, 9, (40,), generator=generator)
    eager, mine = oracle.clone(), oracle.clone()
    eager[:2] += 1
    mine[:2] = eager[:2]
    mine[10 : 10 + changed] += 1
    here, there = both(mine, oracle, eager, DType.I64)
    agree(here, there)
    assert (here.complaint is None) == (changed == 0)


def test_slices_and_a_sample_do_not_change_what_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_compare, "SLICE", 64)
    monkeypatch.setattr(tensor_compare, "EXPLAINED", 0)
    oracle = torch.randn(50, 20, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    mine = oracle.float()
    mine[31, 7] += 0.5
    mine[31, 8] += 0.25
    here, there = both(mine, oracle, oracle.float(), DType.F32)
    agree(here, there)
    assert here.complaint is not None
    assert "out[31, 7]" in here.complaint.message
    assert "2 of 1,000 elements are wrong" in here.complaint.message


def test_a_large_output_is_told_the_pattern_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_compare, "SLICE", 64)
    monkeypatch.setattr(tensor_compare, "EXPLAINED", 0)
    monkeypatch.setattr(tensor_compare, "SAMPLE", 16)
    oracle = torch.randn(96, 20, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) + 4
    mine = oracle.float()
    mine[31::32] *= 1.5
    here, there = both(mine, oracle, oracle.float(), DType.F32)
    agree(here, there)
    assert here.complaint is not None and there.complaint is not None
    pattern = "60 of 1,920 elements are wrong: whole rows, one row in 32, from 31; each is 1.5 times what is expected"
    for complaint in (here.complaint, there.complaint):
        assert pattern in complaint.message
    wrong_integers, _ = both(torch.tensor([1, 2, 9, 9]), torch.arange(1, 5), torch.arange(1, 5), DType.I64)
    assert wrong_integers.complaint is not None and "only the tail" in wrong_integers.complaint.message


def test_a_complaint_on_few_elements_names_the_pattern() -> None:
    oracle = torch.ones(64, dtype=torch.float64)
    mine = oracle.float()
    mine[60:] = 0
    here, _ = both(mine, oracle, oracle.float(), DType.F32)
    assert here.complaint is not None and "only the tail" in here.complaint.message


def test_the_largest_error_between_two_float64_results() -> None:
    theirs = torch.tensor([1.0, float("nan"), float("inf"), 0.0], dtype=torch.float64)
    assert largest_error(theirs.clone(), theirs) == 0.0
    moved = theirs.clone()
    moved[0] += 1e-6
    assert largest_error(moved, theirs) == pytest.approx(1e-6, rel=1e-3)
    moved[1] = 5.0
    assert largest_error(moved, theirs) == np.inf
    assert largest_error(torch.zeros(3), theirs) == np.inf
    assert largest_error(torch.tensor([1, 2]), torch.tensor([1, 3])) == np.inf
