"""The pool over a cluster of two nodes on this machine: verdicts, faults, crashes, lost and silent machines, none left.

Each node is a `ray start` with one core and a home of its own; workers simulate.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install 'warpsmith[ray]'")

from memory.errors import BadInput, ToolMissing, WorkerLost
from memory.records import Evaluation, Status
from tests.cases import scaled_relu_case
from tests.graph.test_run import start, wait_for
from tests.problems import KERNEL, module_text, scaled_relu_program
from tests.tools.ray_nodes import Cluster, alive, kill, wait_until
from tests.tools.test_pool import ENDLESS, hasty
from tools.case import Case
from tools.devices.build import DeviceSpec
from tools.ray_actor import SeatReport, SeatSpec
from tools.ray_pool import RayPool
from tools.ray_seats import Patience, fault_of, unfit
from tools.worker import BaselineJob, EvaluationJob
from tools.worker_process import WorkerFailure

DEVICE = DeviceSpec("simulator", "h200", timeout_s=60.0)
PATIENCE = Patience(wait_s=60.0, beat_s=1.0, silent_s=3.0)
SLOW = 400
"""Trials of a soak that takes some seconds."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="ws-"))  # short, for Ray's sockets lie below it
    cluster = Cluster(folder)
    yield cluster
    cluster.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the tests of this file compile is compiled once."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def pool(cluster: Cluster, home: Path) -> Iterator[RayPool]:
    """As many actors as there are cores: one on each of two nodes."""
    if len(cluster.nodes) < 2:
        cluster.add()
    with RayPool(SeatSpec(DEVICE, str(home / "cache"), spares=0, compilers=0), 0, patience=PATIENCE) as pool:
        assert pool.callers == 2
        yield pool.warm()


@pytest.fixture
def full(pool: RayPool, cluster: Cluster) -> RayPool:
    """The pool with both its actors, on two nodes."""
    while len(cluster.nodes) < 2:
        cluster.add()
    wait_until(lambda: len(pool.nodes()) == 2, "both actors are ready")
    return pool


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return scaled_relu_case(tmp_path / "trials")


def answers(pool: RayPool, jobs: list[EvaluationJob]) -> list[Evaluation | None]:
    with ThreadPoolExecutor(len(jobs)) as callers:
        return list(callers.map(pool.evaluate, jobs))


def soak(case: Case) -> EvaluationJob:
    """A right program over so many trials that there is time for an accident."""
    return EvaluationJob(scaled_relu_program(), replace(case, trials=case.trials * (SLOW // 5)), kind="soak")


@pytest.mark.usefixtures("cluster")
def test_a_folder_that_a_machine_cannot_have_is_named_with_the_machine(case: Case) -> None:
    with (
        RayPool(SeatSpec(DEVICE, "/proc/nowhere", spares=0, compilers=0), 1) as pool,
        pytest.raises(BadInput, match=f"'/proc/nowhere' on {socket.gethostname()}: .*choose a home"),
    ):
        pool.evaluate(EvaluationJob(scaled_relu_program(), case))


@pytest.mark.usefixtures("cluster")
def test_without_a_machine_that_fits_a_job_ends_in_an_error_that_says_what_is_missing(
    home: Path, case: Case
) -> None:
    spec = SeatSpec(DeviceSpec("cuda", "Some GPU"), str(home / "cache"), spares=1, compilers=0)
    with RayPool(spec, 0, patience=Patience(wait_s=1.0)) as gpus:
        started = time.monotonic()
        with pytest.raises(
            WorkerLost, match=r"for 1 s: each worker needs 1 CPU and 1 GPU, .* 0 of 0 GPU free"
        ):
            gpus.evaluate(EvaluationJob(scaled_relu_program(), case))
        assert time.monotonic() - started < 10


def test_a_run_survives_the_loss_of_a_node(cluster: Cluster, tmp_path: Path, home: Path) -> None:
    (tmp_path / "scaled.py").write_text(module_text(2048, 512))
    second = cluster.add()
    ray = ["--pool", "ray", "--ray-address", cluster.address]
    size = ["--population", "4", "--generations", "1", "--soak", "0", "--quiet"]
    process = start(tmp_path, "optimize", "scaled.py", *size, *ray, home=str(home))
    wait_for(lambda: second.workers() and evaluations(home / "store.db"), process)
    cluster.kill(second)
    _, said = process.communicate(timeout=200)
    assert process.returncode == 0, said
    assert list((tmp_path / "warpsmith-out").glob("scaled-*.py"))


def evaluations(store: Path) -> int:
    """Verdicts that a run has stored so far."""
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as reader:
            return int(reader.execute("select count(*) from evaluations").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def test_every_node_judges_and_needs_no_file_of_the_machine_that_asks(
    full: RayPool, cluster: Cluster, case: Case, tmp_path: Path, home: Path
) -> None:
    job = EvaluationJob(scaled_relu_program(), case)
    first = full.evaluate(job)
    assert first is not None
    assert first.status is Status.PASSED, first.diagnostics
    shutil.rmtree(tmp_path / "trials")
    # Both at once: the second actor gets its trials from the first's sender.
    assert [one and one.status for one in answers(full, [job, job])] == [Status.PASSED] * 2
    assert [len(node.actors()) for node in cluster.nodes] == [1, 1]
    shelves = [len(list(shelf.glob("*/trial.json"))) for shelf in (home / "cache").glob("trials-*")]
    assert shelves == [len(case.trials)] * 2


def test_verdicts_and_faults_are_those_of_a_local_pool(full: RayPool, case: Case) -> None:
    assert full.evaluate(EvaluationJob(scaled_relu_program(), case, kind="soak")) is None
    wrong = scaled_relu_program(KERNEL.replace("y[i] =", "y[i] = 1.0f +"))
    evaluation = full.evaluate(EvaluationJob(wrong, case, kind="soak"))
    assert evaluation is not None and evaluation.status is Status.INCORRECT
    with pytest.raises(BadInput, match="models times"):
        full.measure_baselines(BaselineJob(case))


def test_what_a_candidate_does_to_its_process_does_not_end_the_actor(
    full: RayPool, cluster: Cluster, case: Case
) -> None:
    before = [node.actors() for node in cluster.nodes]
    endless, right = scaled_relu_program(ENDLESS), EvaluationJob(scaled_relu_program(), case)
    with ThreadPoolExecutor(2) as callers:
        pending = [callers.submit(full.evaluate, EvaluationJob(endless, case)) for _ in range(2)]
        time.sleep(1.0)
        for pid in [pid for node in cluster.nodes for pid in node.workers()]:
            kill(pid)
        lost = [one.result(60) for one in pending]
    assert [one and one.diagnostics[0].message[-14:] for one in lost] == ["(exit code -9)"] * 2
    after = answers(full, [EvaluationJob(endless, hasty(case, 2.0)), right])
    assert [one and one.status for one in after] == [Status.TIMED_OUT, Status.PASSED]
    assert [node.actors() for node in cluster.nodes] == before


@pytest.mark.parametrize("accident", ["the machine hangs", "the machine is lost"])
def test_work_of_a_machine_that_is_gone_is_done_elsewhere(
    accident: str, full: RayPool, cluster: Cluster, case: Case
) -> None:
    second = cluster.nodes[1]
    with ThreadPoolExecutor(2) as callers:
        pending = [callers.submit(full.evaluate, soak(case)) for _ in range(2)]
        time.sleep(1.5)
        orphans = second.workers()
        assert orphans
        if accident == "the machine is lost":
            cluster.kill(second)
        else:
            for actor in second.actors():
                os.kill(actor, signal.SIGSTOP)
        assert [one.result(90) for one in pending] == [None, None]
    if accident == "the machine is lost":
        assert len(full.nodes()) == 1
        wait_until(
            lambda: not any(alive(pid) for pid in orphans), "what the lost actor started has ended", 5.0
        )


def test_a_machine_that_joins_takes_a_lost_ones_place_and_its_loss_is_noticed_without_a_job(
    full: RayPool, cluster: Cluster
) -> None:
    cluster.kill(cluster.nodes[1])
    wait_until(lambda: len(full.nodes()) == 1, "the loss is noticed", 15.0)


def test_a_machine_with_other_software_or_another_gpu_is_refused() -> None:
    here = SeatReport("here", code="a", torch="2.13", device="cuda:NVIDIA H200")
    assert unfit(replace(here, node="there"), here) is None
    other: list[tuple[Callable[[], SeatReport], str]] = [
        (lambda: replace(here, node="there", code="b"), "there has another Warpsmith than here"),
        (lambda: replace(here, node="there", torch="2.12"), "there has torch 2.12 and here 2.13"),
        (lambda: replace(here, node="there", device="cuda:A100"), "there has cuda:A100, and this run is for"),
    ]
    for report, words in other:
        fault = unfit(report(), here)
        assert isinstance(fault, BadInput) and words in str(fault)


def test_faults_come_back_as_what_they_were() -> None:
    assert isinstance(fault_of(WorkerFailure("ToolMissing", "no g++"), "x"), ToolMissing)
    assert isinstance(fault_of(WorkerFailure("WorkerLost", "gone"), "x"), WorkerLost)
    assert str(fault_of(WorkerFailure("WarpsmithError", "as it was"), "x")) == "as it was"
    assert str(fault_of(WorkerFailure("Bug", "trace"), "doing x")) == "doing x failed by our own fault: trace"
