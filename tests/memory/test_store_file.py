"""The store's file: threads, processes, kills, damage and versions."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memory.errors import StoreError
from memory.store import Store
from tests.memory import made

ROOT = Path(__file__).parents[2]
WRITER = """
import sys
from pathlib import Path
from memory.store import Store
from tests.memory import made
path, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
with Store(path) as store:
    store.put_problem(made.problem())
    store.put_run(made.run())
    for number in range(first, first + count):
        key = store.put_program(made.program(str(number) * 500))
        store.put_candidate(made.candidate(str(number), key))
        print(number, flush=True)
"""


def writer(path: Path, first: int, count: int) -> subprocess.Popen[str]:
    """A process that writes candidates and prints the number of each once it is kept."""
    command = [sys.executable, "-c", WRITER, str(path), str(first), str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def fresh(path: Path) -> Store:
    """A store with a problem and a run."""
    store = Store(path)
    store.put_problem(made.problem())
    store.put_run(made.run())
    return store


def test_threads_may_share_a_store(tmp_path: Path) -> None:
    with fresh(tmp_path / "s.db") as store:

        def work(number: int) -> str | None:
            key = store.put_program(made.program(str(number % 10)))
            store.put_candidate(made.candidate(str(number), key))
            store.put_evaluation(made.evaluation(key, median_us=1.0 + number))
            best = store.best_candidate("run-1")
            return best.candidate.id if best else None

        with ThreadPoolExecutor(8) as pool:
            assert None not in list(pool.map(work, range(80)))
        assert len(store.candidates("run-1")) == 80
        assert sum(store.counts("run-1").by_status.values()) == 80


def test_processes_may_start_at_once_on_a_store_that_is_not_there_yet(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    writers = [writer(path, first, 20) for first in (0, 100, 200, 300)]
    for process in writers:
        process.communicate(timeout=60)
    assert [process.returncode for process in writers] == [0, 0, 0, 0]
    with Store(path) as store:
        assert len(store.candidates("run-1")) == 80


@pytest.mark.parametrize("after", [1, 17, 60])
def test_a_killed_process_loses_nothing_that_it_was_told_is_kept(tmp_path: Path, after: int) -> None:
    path = tmp_path / "s.db"
    process = writer(path, 0, 100_000)
    assert process.stdout is not None
    told = [int(process.stdout.readline()) for _ in range(after)]
    os.kill(process.pid, signal.SIGKILL)
    told += [int(line) for line in process.communicate(timeout=30)[0].splitlines() if line.strip()]
    assert process.returncode == -signal.SIGKILL
    with Store(path) as store:
        store.check()
        kept = store.candidates("run-1")
        assert {int(c.id) for c in kept} >= set(told)
        assert all(store.program(c.program_hash).source for c in kept)
        store.put_candidate(made.candidate("next", kept[0].program_hash))


def test_a_failed_write_leaves_nothing_behind_and_the_store_usable(tmp_path: Path) -> None:
    with fresh(tmp_path / "s.db") as store:
        key = store.put_program(made.program())
        store.put_candidate(made.candidate("a", key))
        with pytest.raises(StoreError):
            store.put_candidate(made.candidate("a", key, generation=1))
        store.put_candidate(made.candidate("b", key))
        assert [c.id for c in store.candidates("run-1")] == ["a", "b"]


def test_a_store_locked_for_too_long_says_so(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    fresh(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with Store(path, timeout_s=0.1) as store, pytest.raises(StoreError, match=r"stayed locked .* 0\.1 s"):
        store.put_program(made.program())
    other.close()


def test_a_writer_waits_for_another_process_to_finish(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with fresh(path) as store:
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.3, lambda: other.execute("COMMIT"))
        timer.start()
        store.put_program(made.program())
        timer.join()
        other.close()


@pytest.mark.parametrize("column", ["store", "records"])
def test_a_newer_version_is_refused_and_left_as_it_was(tmp_path: Path, column: str) -> None:
    path = tmp_path / "s.db"
    fresh(path).close()
    with sqlite3.connect(path) as other:
        other.execute(f"UPDATE schema_version SET {column} = 99")
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"has versions .*99.*use the Warpsmith that wrote it"):
        Store(path)
    assert path.read_bytes() == before


def test_another_programs_database_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program's database; name another file"):
        Store(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.write_text("these are my notes, please keep them" * 100)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is not a SQLite database; name another file"):
        Store(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", ["truncated", "overwritten"])
def test_a_damaged_store_is_refused_with_a_remedy_and_left_as_it_was(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "s.db"
    with fresh(path) as store:
        for number in range(50):
            store.put_program(made.program(str(number) * 1000))
    whole = path.read_bytes()
    half = len(whole) // 2
    path.write_bytes(whole[:half] if damage == "truncated" else whole[:half] + b"\x55" * (len(whole) - half))
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"is damaged; restore a copy, or salvage it"):
        Store(path)
    assert path.read_bytes() == before


def test_a_program_that_was_tampered_with_is_not_handed_out(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with fresh(path) as store:
        key = store.put_program(made.program())
    with sqlite3.connect(path) as other:
        other.execute("UPDATE sources SET text = 'evil'")
        other.execute("UPDATE problems SET body = '{}'")
    other.close()
    with Store(path) as store:
        with pytest.raises(StoreError, match="another content hash"):
            store.program(key)
        with pytest.raises(StoreError, match="is damaged; restore a copy"):
            store.problem(made.problem().content_hash())


def test_a_path_that_cannot_be_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened; check that it is a file"):
        Store(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be opened"):
        Store(tmp_path / "file" / "s.db")


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = fresh(tmp_path / "s.db")
    store.close()
    with pytest.raises(StoreError, match="open it again"):
        store.runs()
