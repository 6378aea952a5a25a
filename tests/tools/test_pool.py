"""The pool: answers, hard deadlines, replacements, and faults of the machine that are not the candidate's."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from memory.errors import BadInput, DiskFull, ToolMissing
from memory.records import Status
from tests.cases import scaled_relu_case
from tests.full_disks import Ballast, among_small_disks, mount
from tests.problems import KERNEL, scaled_relu_program
from tools.case import Case
from tools.device_trials import DeviceTrial
from tools.devices.build import DeviceSpec
from tools.inputs import Distribution
from tools.policy import Policy
from tools.pool import LocalPool
from tools.worker import BaselineJob, EvaluationJob, WorkerSpec

ENDLESS = """
extern "C" __global__ void scaled_relu(const float* x, const float* weight, float* y) {
  while (true) { ((volatile float*)y)[threadIdx.x] = x[0] * weight[0]; }
}
"""


@pytest.fixture(scope="module")
def spec(cache_dir: Path) -> WorkerSpec:
    return WorkerSpec(DeviceSpec("simulator", "h200", timeout_s=60.0), cache_dir)


@pytest.fixture(scope="module")
def pool(spec: WorkerSpec) -> Iterator[LocalPool]:
    with LocalPool(spec, 1) as pool:
        yield pool


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return scaled_relu_case(tmp_path)


def hasty(case: Case, deadline_s: float) -> Case:
    policy = Policy.model_validate({**case.policy.model_dump(), "deadline_s": deadline_s})
    return replace(case, policy=policy)


def test_a_right_program_passes_in_a_worker(pool: LocalPool, case: Case) -> None:
    evaluation = pool.evaluate(EvaluationJob(scaled_relu_program(), case))
    assert evaluation is not None
    assert evaluation.status is Status.PASSED, evaluation.diagnostics


def test_sanitizing_finds_accesses_and_leaves_values_alone(pool: LocalPool, case: Case) -> None:
    wrong = scaled_relu_program(KERNEL.replace("y[i] =", "y[i] = 1.0f +"))
    assert pool.evaluate(EvaluationJob(wrong, case, kind="sanitize")) is None
    stray = scaled_relu_program(KERNEL.replace("i < ROWS * COLS", "i < ROWS * COLS + 3"))
    found = pool.evaluate(EvaluationJob(stray, case, kind="sanitize"))
    assert found is not None and found.status is Status.SANITIZER_ERROR


def test_bad_input_found_in_a_worker_is_bad_input_outside(pool: LocalPool, case: Case) -> None:
    with pytest.raises(BadInput, match="models times"):
        pool.measure_baselines(BaselineJob(case))
    drawn = replace(case, drawn=(DeviceTrial(1, Distribution.NORMAL, case.trials[0]),))
    with pytest.raises(BadInput, match="cannot draw trials"):
        pool.evaluate(EvaluationJob(scaled_relu_program(), drawn))


def test_a_soak_that_passes_has_no_verdict_and_one_that_fails_has(pool: LocalPool, case: Case) -> None:
    assert pool.evaluate(EvaluationJob(scaled_relu_program(), case, kind="soak")) is None
    wrong = scaled_relu_program(scaled_relu_program().source.replace("0.0f", "0.5f"))
    evaluation = pool.evaluate(EvaluationJob(wrong, case, kind="soak"))
    assert evaluation is not None
    assert evaluation.status is Status.INCORRECT


def test_an_overrun_is_killed_at_the_deadline_and_the_next_job_is_answered(
    pool: LocalPool, case: Case
) -> None:
    pool.evaluate(EvaluationJob(scaled_relu_program(), case))
    started = time.monotonic()
    evaluation = pool.evaluate(EvaluationJob(scaled_relu_program(ENDLESS), hasty(case, 3.0)))
    assert time.monotonic() - started < 10
    assert evaluation is not None
    assert evaluation.status is Status.TIMED_OUT
    after = pool.evaluate(EvaluationJob(scaled_relu_program(), case))
    assert after is not None
    assert after.status is Status.PASSED


def test_a_worker_that_dies_costs_its_candidate_only(pool: LocalPool, case: Case) -> None:
    pool.evaluate(EvaluationJob(scaled_relu_program(), case))

    def kill() -> None:
        time.sleep(1.0)
        for process in multiprocessing.active_children():
            process.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    evaluation = pool.evaluate(EvaluationJob(scaled_relu_program(ENDLESS), case))
    killer.join()
    assert evaluation is not None
    assert evaluation.status is Status.RUNTIME_ERROR
    assert "exit code -9" in evaluation.diagnostics[0].message
    after = pool.evaluate(EvaluationJob(scaled_relu_program(), case))
    assert after is not None
    assert after.status is Status.PASSED


def test_a_missing_compiler_is_the_machines_fault_and_says_what_to_install(
    tmp_path: Path, case: Case
) -> None:
    path = os.environ["PATH"]
    os.environ["PATH"] = str(tmp_path)
    try:
        spec = WorkerSpec(DeviceSpec("simulator", "h200"), tmp_path / "cache")
        with LocalPool(spec, 1) as pool, pytest.raises(ToolMissing, match=r"apt-get install g\+\+"):
            pool.evaluate(EvaluationJob(scaled_relu_program(), case))
    finally:
        os.environ["PATH"] = path


def test_no_worker_outlives_its_pool(spec: WorkerSpec) -> None:
    before = set(multiprocessing.active_children())
    with LocalPool(spec, 2) as pool:
        pool.warm()
        assert len(set(multiprocessing.active_children()) - before) == 2
    assert set(multiprocessing.active_children()) <= before


def evaluate_on_a_small_disk(libraries: Path, spec: WorkerSpec, case: Case) -> tuple[list[str], str]:
    """What a worker says where compiled programs have 8 KiB, 40 KiB, and room enough."""
    mount(libraries, 4000)
    job, refusals = EvaluationJob(scaled_relu_program(), case), []
    with LocalPool(spec, 1) as pool:
        for left in (8, 40):
            ballast = Ballast(libraries, left)
            try:
                pool.evaluate(job)
            except DiskFull as full:
                refusals.append(str(full))
            ballast.throw_out()
        verdict = pool.evaluate(job)
    return refusals, verdict.status.value if verdict is not None else "none"


def test_a_program_that_cannot_be_compiled_for_want_of_room_has_no_verdict(
    pool: LocalPool, spec: WorkerSpec, case: Case
) -> None:
    assert pool.evaluate(EvaluationJob(scaled_relu_program(), case)) is not None
    (libraries,) = spec.cache_dir.glob("host/simulator-*/libraries")
    refusals, verdict = among_small_disks(evaluate_on_a_small_disk, libraries, spec, case)
    assert len(refusals) == 2
    assert all(f"the disk at '{libraries}' is full" in text for text in refusals), refusals
    assert verdict == "passed"
