"""What fits a GPU's memory, and the sentence for what does not."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from memory.records import Problem
from tests.problems import scaled_relu_problem
from tools.footprint import ORACLE_FACTOR, batch_that_fits, peak_bytes, too_large, traffic_bytes
from tools.gpus import GpuSpec, gpu_named


def gpu(memory_bytes: int) -> GpuSpec:
    return replace(gpu_named("h200"), memory_bytes=memory_bytes)


def test_traffic_is_each_tensor_once_and_the_peak_adds_what_lies_between() -> None:
    problem = scaled_relu_problem(100, 10)
    assert traffic_bytes(problem) == 4 * (1000 + 10 + 1000)
    assert peak_bytes(problem) == traffic_bytes(problem) + 4 * 1000


@given(rows=st.integers(2, 5000), memory=st.integers(10_000, 10_000_000))
def test_a_batch_that_is_said_to_fit_fits_and_the_next_does_not(rows: int, memory: int) -> None:
    problem = scaled_relu_problem(rows, 16)
    found = batch_that_fits(problem, gpu(memory))
    if found is None:
        assert ORACLE_FACTOR * peak_bytes(scaled_relu_problem(1, 16)) > memory
        return
    now, fits = found
    assert now == rows and 1 <= fits < rows
    assert ORACLE_FACTOR * peak_bytes(scaled_relu_problem(fits, 16)) <= memory
    if fits < rows - 1:
        assert ORACLE_FACTOR * peak_bytes(scaled_relu_problem(fits + 1, 16)) > memory


def test_the_sentence_names_the_problem_the_need_and_the_remedy() -> None:
    problem: Problem = scaled_relu_problem(1 << 20, 64)
    assert "a first dimension of about" in too_large(problem, gpu(1 << 30))
    assert "would fit" in too_large(problem, gpu(1 << 30))
    assert "use a GPU with more memory" in too_large(problem, gpu(100))
