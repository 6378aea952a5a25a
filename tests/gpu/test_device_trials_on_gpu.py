"""Trials that the GPU draws itself, on real hardware: `pytest -m gpu tests/gpu`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from memory.records import Status
from tests.cases import DISTRIBUTIONS, scaled_relu_case
from tests.problems import KERNEL, scaled_relu_problem, scaled_relu_program
from tools.baselines import measured_baselines
from tools.case import Case
from tools.device_trials import DeviceTrial
from tools.devices.build import cuda_spec, open_device
from tools.devices.cuda import CudaDevice
from tools.evaluation import check_trials, evaluate
from tools.footprint import batch_that_fits
from tools.inputs import Distribution
from tools.reference import Reference
from tools.trial_cache import TrialCache

Note = Callable[[str], None]
ROWS, COLUMNS = 16384, 4096
"""64 Mi elements."""
SOAK = 1000
SOAK_LIMIT_S = 120.0

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]


@pytest.fixture(scope="module")
def device(cache_dir: Path) -> Iterator[CudaDevice]:
    """The GPU."""
    with open_device(cuda_spec(), cache_dir) as opened:
        assert isinstance(opened, CudaDevice)
        yield opened


def large_case(folder: Path) -> Case:
    """Module trials at 33 x 40, three drawn ones at 64 Mi elements."""
    case = scaled_relu_case(folder, scaled_relu_problem(ROWS, COLUMNS), scaled_relu_problem(33, COLUMNS))
    kinds = (Distribution.AUTHOR, Distribution.NORMAL, Distribution.LARGE)
    return replace(case, drawn=tuple(DeviceTrial(i, kind, case.trials[0]) for i, kind in enumerate(kinds)))


def test_a_large_problem_is_judged_and_raced_without_a_file_of_its_size(
    device: CudaDevice, tmp_path: Path, note: Note
) -> None:
    case, cache = large_case(tmp_path), TrialCache()
    baselines = measured_baselines(case, device, cache.load)
    assert baselines.untrusted is None and [b.name for b in baselines.times] == ["eager"]
    started = time.perf_counter()
    evaluation = evaluate(scaled_relu_program(), case, device, cache.load)
    taken = time.perf_counter() - started
    assert evaluation.status is Status.PASSED, evaluation.diagnostics
    assert evaluation.timing is not None and evaluation.timing.source == "measured"
    assert {f"{d.distribution.value} at full size" for d in case.drawn} <= {
        e.distribution for e in evaluation.errors
    }
    note(f"one candidate of 64 Mi elements judged in {taken:.2f} s; {evaluation.timing}")


def test_an_error_at_the_very_end_of_a_large_tensor_is_found(device: CudaDevice, tmp_path: Path) -> None:
    source = KERNEL.replace("y[i] =", "y[i] = (i == ROWS * COLS - 1 && ROWS > 33) ? 9.0f :")
    evaluation = evaluate(scaled_relu_program(source), large_case(tmp_path), device)
    assert evaluation.status is Status.INCORRECT
    assert f"[{ROWS - 1}, {COLUMNS - 1}]" in evaluation.diagnostics[0].message


def test_a_thousand_trials_of_64_mi_elements_end_within_two_minutes(
    device: CudaDevice, tmp_path: Path, note: Note
) -> None:
    case, cache = large_case(tmp_path), TrialCache()
    trials = tuple(
        DeviceTrial(i, DISTRIBUTIONS[i % len(DISTRIBUTIONS)], case.trials[i % 5], move_weights=True)
        for i in range(SOAK)
    )
    started = time.perf_counter()
    done = 0
    for start in range(0, SOAK, 50):
        batch = replace(case, trials=(), drawn=trials[start : start + 50])
        assert check_trials(scaled_relu_program(), batch, device, cache.load) is None
        done = start + 50
        if time.perf_counter() - started > SOAK_LIMIT_S:
            break
    taken = time.perf_counter() - started
    note(f"{done} trials of 64 Mi elements in {taken:.1f} s, {taken / done * 1e3:.0f} ms each")
    assert done == SOAK and taken <= SOAK_LIMIT_S


def test_a_problem_that_does_not_fit_is_said_so(device: CudaDevice, tmp_path: Path) -> None:
    huge = scaled_relu_problem(1 << 22, 1 << 14)
    case = replace(large_case(tmp_path), problem=huge, twin=scaled_relu_problem(33, COLUMNS))
    found = measured_baselines(case, device, lambda trial: trial.load())
    assert found.out_of_memory
    fits = batch_that_fits(huge, device.gpu)
    assert fits is not None and fits[1] < 1 << 22


MIXING = """
import numpy as np
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        table = torch.from_numpy(np.linspace(0, 1, columns, dtype=np.float32))
        self.weight = nn.Parameter(MADE)

    def forward(self, x):
        return torch.relu(x * self.weight)


def get_inputs():
    return [torch.rand(33, 40)]


def get_init_inputs():
    return [40]
"""


@pytest.mark.parametrize(
    ("made", "built_on_gpu"), [("torch.rand(columns)", True), ("torch.rand(columns) + table", False)]
)
def test_a_module_is_built_on_the_gpu_where_its_constructor_allows_it(
    tmp_path: Path, made: str, built_on_gpu: bool
) -> None:
    problem = scaled_relu_problem()
    target = problem.target.model_copy(update={"source": MIXING.replace("MADE", made)})
    problem = problem.model_copy(update={"target": target})
    with Reference(target, problem, device="cuda") as reference:
        first = reference.trial(1, Distribution.NORMAL, tmp_path / "1").load()
        second = reference.trial(2, Distribution.NORMAL, tmp_path / "2").load()
    weights = [data.state["weight"] for data in (first, second)]
    assert not (weights[0] == weights[1]).any()
    torch.manual_seed(1)
    drawn = torch.rand(40, device="cuda" if built_on_gpu else "cpu").cpu()
    if built_on_gpu:
        assert torch.equal(torch.from_numpy(weights[0].copy()), drawn)
    else:
        table = torch.linspace(0, 1, 40)
        assert torch.allclose(torch.from_numpy(weights[0].copy()), drawn + table)
