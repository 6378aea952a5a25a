"""Workers that own a GPU: broken contexts, hangs, replacements, throughput. Prints the numbers it measures."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from memory.records import Status
from tests.cases import scaled_relu_case
from tests.problems import KERNEL, scaled_relu_problem, scaled_relu_program
from tools.case import Case
from tools.devices.build import cuda_spec
from tools.devices.port import CompileMode
from tools.policy import Policy
from tools.pool import LocalPool
from tools.worker import BaselineJob, EvaluationJob, WorkerSpec

Note = Callable[[str], None]

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]

ILLEGAL = KERNEL.replace("y[i] =", "*(float*)(((long long)i << 44) + 16) =")
ENDLESS = KERNEL.replace("if (i <", "while (((volatile float*)y)[0] != 12345.0f) {}\n  if (i <")


@pytest.fixture(scope="module")
def pool(cache_dir: Path) -> Iterator[LocalPool]:
    with LocalPool(WorkerSpec(cuda_spec(), cache_dir), 1, spares=1, compilers=4) as opened:
        opened.warm()
        yield opened


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return scaled_relu_case(tmp_path, scaled_relu_problem(512, 256))


def right(case: Case) -> EvaluationJob:
    return EvaluationJob(scaled_relu_program(), case)


def assert_passes(pool: LocalPool, case: Case) -> None:
    evaluation = pool.evaluate(right(case))
    assert evaluation is not None
    assert evaluation.status is Status.PASSED, evaluation.diagnostics


def test_an_illegal_access_costs_its_candidate_only_and_the_spare_is_quick(
    pool: LocalPool, case: Case, note: Note
) -> None:
    replaced: list[float] = []
    for attempt in range(3):
        assert_passes(pool, case)
        time.sleep(6.0)  # the next spare gets ready
        broken = pool.evaluate(EvaluationJob(scaled_relu_program(f"// {attempt}\n{ILLEGAL}"), case))
        assert broken is not None
        assert broken.status is Status.RUNTIME_ERROR, broken
        assert broken.diagnostics[0].rule == "device_error", broken
        started = time.monotonic()
        assert_passes(pool, case)
        replaced.append(time.monotonic() - started)
    median = statistics.median(replaced)
    note(f"first verdict of the spare after an illegal access: median {median:.2f} s of {replaced}")
    assert median < 1.5


def test_a_kernel_that_never_ends_is_killed_at_the_deadline(pool: LocalPool, case: Case, note: Note) -> None:
    assert_passes(pool, case)
    time.sleep(6.0)
    policy = Policy.model_validate({**case.policy.model_dump(), "deadline_s": 5.0})
    started = time.monotonic()
    stuck = pool.evaluate(EvaluationJob(scaled_relu_program(ENDLESS), replace(case, policy=policy)))
    ended = time.monotonic()
    assert stuck is not None
    assert stuck.status is Status.TIMED_OUT, stuck
    assert_passes(pool, case)
    note(
        f"killed {ended - started - 5:.2f} s after its deadline; next verdict {time.monotonic() - ended:.2f} s later"
    )


def test_ten_candidates_a_second_are_judged(pool: LocalPool, case: Case, note: Note) -> None:
    assert_passes(pool, case)
    count = 60
    sources = [KERNEL.replace("int i =", f"const int tag = {n}; (void)tag; int i =") for n in range(count)]
    jobs = [EvaluationJob(scaled_relu_program(source), case) for source in sources]
    started = time.monotonic()
    with ThreadPoolExecutor(pool.callers) as threads:
        evaluations = list(threads.map(pool.evaluate, jobs))
    rate = count / (time.monotonic() - started)
    stages: dict[str, list[float]] = {}
    for evaluation in evaluations:
        assert evaluation is not None and evaluation.status is Status.PASSED
        for stage, seconds in evaluation.seconds.items():
            stages.setdefault(stage, []).append(seconds * 1e3)
    medians = {stage: round(statistics.median(values), 1) for stage, values in stages.items()}
    note(f"{rate:.1f} candidates/s; median ms by stage {medians}")
    assert rate >= 10


@pytest.mark.timeout(600)
def test_baselines_are_measured_in_the_worker(pool: LocalPool, case: Case, note: Note) -> None:
    eager = pool.measure_baselines(BaselineJob(case))
    assert [b.name for b in eager.times] == ["eager"]
    modes: tuple[CompileMode, ...] = ("default", "max-autotune-no-cudagraphs", "reduce-overhead")
    found = pool.measure_baselines(BaselineJob(case, modes=modes))
    note(f"{found}")
    assert {b.name for b in found.times} >= {"eager"}
    assert len(found.times) == 3 or found.absent
