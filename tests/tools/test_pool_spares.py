"""Spares and compiles ahead: what keeps a device busy when candidates break workers."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memory.errors import WarpsmithError
from memory.records import Status
from tests.cases import scaled_relu_case
from tests.problems import KERNEL, scaled_relu_problem, scaled_relu_program
from tools.binding import BoundPlan, bind
from tools.case import Case
from tools.devices.build import DeviceSpec, nvrtc_cache
from tools.devices.compiling import compile_request
from tools.gpus import gpu_named
from tools.lint import Linted
from tools.lint_cache import LintCache
from tools.nvrtc import NvrtcCompiler
from tools.pool import LocalPool
from tools.precompile import Precompiler
from tools.program import validate
from tools.trial_cache import TrialCache
from tools.worker import BaselineJob, EvaluationJob, WorkerSpec

SPEC = DeviceSpec("simulator", "h200", timeout_s=60.0)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return scaled_relu_case(tmp_path)


def test_a_spare_takes_a_lost_workers_place_and_is_refilled(cache_dir: Path, case: Case) -> None:
    job = EvaluationJob(scaled_relu_program(), case)
    before = set(multiprocessing.active_children())
    with LocalPool(WorkerSpec(SPEC, cache_dir), 1, spares=1) as pool:
        pool.warm()
        assert pool.evaluate(job) is not None
        first, spare = sorted(set(multiprocessing.active_children()) - before, key=lambda p: p.pid or 0)
        time.sleep(3.0)  # the spare gets ready meanwhile
        assert first.pid is not None
        os.kill(first.pid, signal.SIGKILL)
        lost = pool.evaluate(job)
        assert lost is not None and lost.status is Status.RUNTIME_ERROR
        after = pool.evaluate(job)
        assert after is not None and after.status is Status.PASSED
        living = set(multiprocessing.active_children()) - before
        assert spare in living and len(living) == 2
    assert set(multiprocessing.active_children()) <= before


def test_candidates_that_wait_are_linted_and_compiled_into_the_caches_that_workers_read(
    tmp_path: Path,
) -> None:
    case = scaled_relu_case(tmp_path / "trials", scaled_relu_problem(67), scaled_relu_problem())
    precompiler = Precompiler(SPEC, tmp_path, 2)
    programs = [scaled_relu_program(KERNEL + f"// {i}\n") for i in range(3)]
    programs.append(scaled_relu_program(KERNEL.replace("float v =", "float v = nothing;")))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda program: precompiler.prepare(program, case), programs))
    precompiler.close()
    lints = LintCache(tmp_path, lint=_ask_nobody)
    with NvrtcCompiler(nvrtc_cache(tmp_path)) as compiler:
        for program in programs:
            plan, _ = validate(program, case.problem, gpu_named("h200"))
            assert plan is not None
            assert lints.findings(plan) == ()
            for one in (plan, bind(program, case.twin)):
                assert compiler.compile(compile_request(one, gpu_named("h200"))).cached


def _ask_nobody(_plan: BoundPlan) -> Linted:
    raise AssertionError("not in the cache")


def test_a_program_with_severe_findings_is_not_compiled_ahead(tmp_path: Path, case: Case) -> None:
    severe = scaled_relu_program(KERNEL.replace("float v =", "float v = clock64() +"))
    precompiler = Precompiler(SPEC, tmp_path / "cache", 1)
    precompiler.prepare(severe, case)
    assert list((tmp_path / "cache").rglob("lint-*/*/*.entry"))
    assert not list((tmp_path / "cache").rglob("nvrtc-*/*/*.entry"))
    # A process that is gone costs its program's turn only.
    [process] = multiprocessing.active_children()
    process.kill()
    precompiler.prepare(scaled_relu_program(), case)
    precompiler.prepare(scaled_relu_program(), case)
    precompiler.close()
    assert list((tmp_path / "cache").rglob("nvrtc-*/*/*.entry"))
    assert multiprocessing.active_children() == []


def test_a_program_that_is_not_well_formed_is_left_to_the_worker(cache_dir: Path, case: Case) -> None:
    wrong = scaled_relu_program(outputs=("weight",))
    job = EvaluationJob(wrong, case)
    with LocalPool(WorkerSpec(SPEC, cache_dir), 1, compilers=1) as pool, ThreadPoolExecutor(2) as threads:
        assert pool.callers == 2
        for evaluation in threads.map(pool.evaluate, [job, job]):
            assert evaluation is not None and evaluation.status is Status.SCHEMA_ERROR


def test_a_candidate_that_comes_alone_goes_straight_to_the_device(cache_dir: Path, case: Case) -> None:
    job = EvaluationJob(scaled_relu_program(), case)
    before = set(multiprocessing.active_children())
    with LocalPool(WorkerSpec(SPEC, cache_dir), 1, compilers=1) as pool, ThreadPoolExecutor(2) as threads:
        for _ in range(2):
            assert pool.evaluate(job) is not None
        assert len(set(multiprocessing.active_children()) - before) == 1
        assert len(list(threads.map(pool.evaluate, [job, job]))) == 2
        assert len(set(multiprocessing.active_children()) - before) == 2


def test_baselines_cannot_be_measured_where_times_are_modelled(cache_dir: Path, case: Case) -> None:
    with (
        LocalPool(WorkerSpec(SPEC, cache_dir), 1) as pool,
        pytest.raises(WarpsmithError, match="models times"),
    ):
        pool.measure_baselines(BaselineJob(case))


def test_a_cached_trial_gives_the_same_arrays_until_it_is_drawn_again(case: Case) -> None:
    cache = TrialCache(limit=2)
    first, second, third, *_ = case.trials
    data = cache.load(first)
    assert cache.load(first) is data
    cache.load(second)
    cache.load(third)
    assert cache.load(first) is not data
    data = cache.load(first)
    os.utime(first.directory / "trial.json", ns=(1, 1))
    assert cache.load(first) is not data
