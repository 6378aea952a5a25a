"""One actor per GPU: verdicts, broken contexts and hangs as in a local pool, and no GPU left busy by a lost actor."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch

pytest.importorskip("ray", reason="Ray is not installed: pip install 'warpsmith[ray]'")

from graph.interrupts import descendants
from memory.records import Evaluation, Status
from tests.cases import scaled_relu_case
from tests.gpu.test_pool_on_gpu import ENDLESS, ILLEGAL, Note
from tests.problems import KERNEL, scaled_relu_problem, scaled_relu_program
from tools.case import Case
from tools.devices.build import cuda_spec
from tools.policy import Policy
from tools.ray_actor import SeatSpec
from tools.ray_pool import RayPool
from tools.worker import BaselineJob, EvaluationJob

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]


@pytest.fixture(scope="module")
def pool(cache_dir: Path) -> Iterator[RayPool]:
    with RayPool(SeatSpec(cuda_spec(), str(cache_dir), spares=1, compilers=0), 0) as pool:
        yield pool.warm()


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return scaled_relu_case(tmp_path, scaled_relu_problem(512, 256))


def judged(pool: RayPool, source: str, case: Case) -> Evaluation:
    evaluation = pool.evaluate(EvaluationJob(scaled_relu_program(source), case))
    assert evaluation is not None
    return evaluation


def hasty(case: Case) -> Case:
    return replace(case, policy=Policy.model_validate({**case.policy.model_dump(), "deadline_s": 5.0}))


def test_every_gpu_has_an_actor_and_times_are_measured(pool: RayPool, case: Case, note: Note) -> None:
    first = judged(pool, KERNEL, case)
    assert first.status is Status.PASSED, first.diagnostics
    assert first.timing is not None and first.timing.source == "measured"
    assert len(pool.nodes()) == torch.cuda.device_count()
    assert [baseline.name for baseline in pool.measure_baselines(BaselineJob(case)).times] == ["eager"]
    sources = [KERNEL.replace("int i =", f"const int tag = {n}; (void)tag; int i =") for n in range(60)]
    started = time.monotonic()
    with ThreadPoolExecutor(pool.callers) as callers:
        found = list(callers.map(lambda source: judged(pool, source, case).status, sources))
    note(f"{len(sources) / (time.monotonic() - started):.1f} candidates/s with {pool.callers} callers")
    assert set(found) == {Status.PASSED}


def test_a_broken_context_and_a_hang_cost_their_candidates_only(pool: RayPool, case: Case) -> None:
    broken = judged(pool, ILLEGAL, case)
    assert broken.status is Status.RUNTIME_ERROR and broken.diagnostics[0].rule == "device_error", broken
    assert judged(pool, KERNEL, case).status is Status.PASSED
    assert judged(pool, ENDLESS, hasty(case)).status is Status.TIMED_OUT
    assert judged(pool, KERNEL, case).status is Status.PASSED


def test_what_a_lost_actor_ran_ends_with_it_and_its_job_is_asked_again(pool: RayPool, case: Case) -> None:
    assert judged(pool, KERNEL, case).status is Status.PASSED
    with ThreadPoolExecutor(1) as caller:
        pending = caller.submit(judged, pool, ENDLESS, hasty(case))
        time.sleep(2.0)
        [actor] = [pid for pid in descendants(os.getpid()) if _command(pid).startswith("ray::SeatActor")]
        orphans = [pid for pid in descendants(actor) if "spawn_main" in _command(pid)]
        os.kill(actor, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while any(_command(pid) for pid in orphans):
            assert time.monotonic() < deadline, "a worker outlived its actor"
            time.sleep(0.1)
        assert orphans and pending.result(120).status is Status.TIMED_OUT
    assert judged(pool, KERNEL, case).status is Status.PASSED


def _command(pid: int) -> str:
    """A process' command line; empty once it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
