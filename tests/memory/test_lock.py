"""The lock of a run: one process, freed by its death."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memory.errors import StoreError
from memory.lock import RunLock, WriterLock

ROOT = Path(__file__).parents[2]
HOLDER = """
import os, sys, time
from pathlib import Path
from memory.lock import RunLock
RunLock(Path(sys.argv[1]), "run/1").acquire()
if sys.argv[2] == "fork" and os.fork() == 0:
    time.sleep(20)
    os._exit(0)
print("held", flush=True)
time.sleep(60)
"""


def holder(path: Path, how: str = "plain") -> subprocess.Popen[str]:
    """A process that holds the lock of run/1."""
    command = [sys.executable, "-c", HOLDER, str(path), how]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_process_is_refused_and_told_who_holds_the_run_until_that_dies(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    process = holder(path)
    with pytest.raises(StoreError, match=rf"'run/1' is being worked on by pid {process.pid} on .*stop it"):
        RunLock(path, "run/1").acquire()
    with RunLock(path, "run/2"):
        pass
    process.kill()
    process.communicate()
    with RunLock(path, "run/1"):
        pass


def test_a_forked_child_does_not_keep_the_run_locked_after_its_parent_died(tmp_path: Path) -> None:
    process = holder(tmp_path / "store.db", "fork")
    process.kill()
    process.wait()
    with RunLock(tmp_path / "store.db", "run/1"):
        os.killpg(process.pid, 9)
    process.communicate()


def test_the_same_process_is_refused_too_and_may_take_it_again_once_released(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with RunLock(path, "a"), pytest.raises(StoreError, match=rf"this process \(pid {os.getpid()}\)"):
        RunLock(path, "a").acquire()
    lock = RunLock(path, "a")
    lock.acquire()
    lock.release()
    lock.release()


def test_whether_a_run_is_worked_on_can_be_asked_without_disturbing_anyone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    lock = RunLock(path, "run/1")
    assert not lock.is_held()
    assert list(tmp_path.iterdir()) == []
    process = holder(path)
    assert lock.is_held() and lock.holder() == process.pid
    process.kill()
    process.communicate()
    assert not lock.is_held() and lock.holder() is None
    with lock:
        # To look at the file again would give the lock up.
        assert lock.is_held() and RunLock(path, "run/1").is_held()
        other = f"from memory.lock import *; print(RunLock(Path({str(path)!r}), 'run/1').is_held())"
        done = subprocess.run([sys.executable, "-c", other], cwd=ROOT, capture_output=True, text=True)
        assert done.stdout == "True\n", done.stderr
    assert not lock.is_held()


def test_a_lock_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot open lock"):
        RunLock(tmp_path / "file" / "store.db", "a").acquire()


def test_writers_take_turns_and_are_counted(tmp_path: Path) -> None:
    path, inside, seen = tmp_path / "w.lock", [], []

    def write() -> None:
        with WriterLock(path).writing() as count:
            inside.append(1)
            seen.append((len(inside), count))
            inside.pop()

    threads = [threading.Thread(target=write) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [(1, number) for number in range(1, 21)]
    assert WriterLock(path).writes() == 20
