"""A process that answers questions: what travels, and that every question ends."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import time
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from memory.errors import ToolMissing, WorkerLost
from tests.cases import scaled_relu_case
from tools.case import Case
from tools.worker_process import (
    ALLOCATOR_SETTINGS,
    READY,
    Died,
    Overrun,
    WorkerFailure,
    WorkerProcess,
    questions,
    reply,
    settle,
)


class Told(Connection):
    """A pipe's end that knows how much came through it."""

    taken = 0

    def recv(self) -> object:
        data = self.recv_bytes()
        self.taken = len(data)
        return pickle.loads(data)


def answer(connection: Connection, start: str) -> None:
    """Answers with the problem's name, the number of trials and the bytes that it took to ask."""
    settle()
    if start == "dies":
        os._exit(7)
    if start == "lacks":
        connection.send(WorkerFailure.of(ToolMissing("no hammer")))
        return
    connection.send(READY)
    told = Told(os.dup(connection.fileno()))
    for case, question in questions(told):
        if question == "die":
            os._exit(3)
        if question == "hang":
            time.sleep(600)
        if question == "heavy":
            connection.send("heavy" in sys.modules)
            continue
        if question == "allocator":
            connection.send([os.environ.get(name) for name in ALLOCATOR_SETTINGS])
            continue
        if question == "collect":
            gc.collect()
            rollup = Path("/proc/self/smaps_rollup").read_text().splitlines()
            sizes = {line.split()[0]: int(line.split()[1]) for line in rollup[1:]}
            connection.send((sizes["Private_Dirty:"], sizes["Rss:"]))
            continue
        connection.send((case.problem.name, len(case.trials), told.taken))


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return scaled_relu_case(tmp_path)


def asked(process: WorkerProcess, case: Case) -> tuple[str, int, int]:
    found = process.ask(case, "name", 30.0)
    assert isinstance(found, tuple)
    return found


def test_a_case_travels_once_and_every_question_is_about_its_own(case: Case) -> None:
    process = WorkerProcess(answer, "")
    other = replace(case, trials=case.trials[:2])
    try:
        name, trials, first = asked(process, case)
        assert (name, trials) == ("scaled_relu", len(case.trials))
        again = asked(process, case)
        assert again[:2] == (name, trials) and again[2] < 100 < first
        assert asked(process, other)[1:2] == (2,)
        assert asked(process, other)[2] < 100
        assert asked(process, case) == (name, trials, first)
    finally:
        process.kill()
    assert not process.usable


@pytest.mark.parametrize(
    ("own", "found"),
    [
        ({}, ["expandable_segments:True", None]),
        ({"PYTORCH_CUDA_ALLOC_CONF": "backend:native"}, ["backend:native", None]),
        ({"PYTORCH_ALLOC_CONF": "backend:native"}, [None, "backend:native"]),
    ],
)
def test_gpu_memory_grows_by_pages_unless_the_user_has_said_how(
    case: Case, monkeypatch: pytest.MonkeyPatch, own: dict[str, str], found: list[str | None]
) -> None:
    for name in ALLOCATOR_SETTINGS:
        # Set before it is removed, so that what the process sets itself is taken back too.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    process = WorkerProcess(answer, "")
    try:
        assert process.ask(case, "allocator", 30.0) == found
    finally:
        process.kill()


def test_an_overrun_is_killed_and_a_death_has_its_exit_code(case: Case) -> None:
    process = WorkerProcess(answer, "")
    asked(process, case)
    started = time.monotonic()
    with pytest.raises(Overrun):
        process.ask(case, "hang", 0.5)
    assert not process.usable and time.monotonic() - started < 10
    process = WorkerProcess(answer, "")
    with pytest.raises(Died) as died:
        process.ask(case, "die", 30.0)
    assert died.value.exit_code == 3 and not process.usable


def test_what_stopped_a_start_is_raised_at_the_first_question(case: Case) -> None:
    process = WorkerProcess(answer, "lacks")
    with pytest.raises(ToolMissing, match="no hammer"):
        process.ask(case, "name", 30.0)
    assert not process.usable
    process = WorkerProcess(answer, "dies")
    with pytest.raises(WorkerLost, match="exit code 7"):
        process.ask(case, "name", 30.0)
    assert not process.usable


def test_an_answer_that_nobody_waits_for_is_no_fault_of_the_worker() -> None:
    asker, worker = Pipe()
    assert reply(worker, "early")
    assert asker.recv() == "early"
    asker.close()
    assert not reply(worker, "late")


def test_collecting_garbage_copies_nothing_of_what_forked_processes_share(case: Case) -> None:
    process = WorkerProcess(answer, "", forked=True)
    try:
        found = process.ask(case, "collect", 30.0)
    finally:
        process.kill()
    assert isinstance(found, tuple)
    private_kib, whole_kib = found
    assert whole_kib > 100 << 10, "it inherits nothing worth sharing"
    assert private_kib < 20 << 10


@pytest.mark.parametrize("forked", [False, True])
def test_a_process_imports_nothing_of_the_program_that_starts_it(tmp_path: Path, forked: bool) -> None:
    (tmp_path / "heavy.py").write_text("")
    main = tmp_path / "main.py"
    main.write_text(
        f"""
import sys
from pathlib import Path
import heavy
from tests.cases import scaled_relu_case
from tests.tools.test_worker_process import answer
from tools.worker_process import WorkerProcess

if __name__ == "__main__":
    process = WorkerProcess(answer, "", forked={forked})
    print(process.ask(scaled_relu_case(Path(sys.argv[1])), "heavy", 60.0))
    process.kill()
    print(sys.modules["__main__"].heavy.__name__)
"""
    )
    ran = subprocess.run(
        [sys.executable, main, tmp_path / "case"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert ran.stdout.split("\n")[:2] == ["False", "heavy"]
