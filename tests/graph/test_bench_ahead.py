"""Captures ahead: how far, what becomes of errors, and that none outlives the benchmark."""

from __future__ import annotations

import os
import time
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from graph.bench_ahead import AHEAD, Capture, CapturesAhead, with_captures
from graph.settings import resolve_settings
from memory.errors import BadInput, CaptureFailed
from tests.problems import module_text
from tools.problem import Captured


@dataclass(frozen=True)
class Job:
    """A job of a benchmark."""

    name: str
    needs_capture: Path | None


class Begun:
    """Begins captures on paper."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def begin(self, path: Path) -> Future[Capture]:
        self.paths.append(path.name)
        return Future()


def jobs(names: str) -> list[Job]:
    """One a letter; capitals need no capture."""
    return [Job(name, Path(name) if name.islower() else None) for name in names]


def test_the_next_capture_is_begun_before_a_job_runs_and_no_more() -> None:
    begun, ran = Begun(), ""
    for job, capturing in with_captures(jobs("abcd"), begun.begin):
        assert capturing is not None
        ran += job.name
        assert "".join(begun.paths) == "abcd"[: len(ran) + AHEAD]
    assert ran == "abcd"


def test_jobs_that_need_no_capture_keep_their_place_and_do_not_hold_up_the_next_one() -> None:
    begun = Begun()
    turns = with_captures(jobs("XaYZbc"), begun.begin)
    assert [(job.name, capturing is None) for job, capturing in [next(turns), next(turns)]] == [
        ("X", True), ("a", False),
    ]  # fmt: skip
    assert begun.paths == ["a", "b"]
    assert [job.name for job, _ in turns] == ["Y", "Z", "b", "c"]


def test_a_capture_keeps_its_own_error_and_its_own_time(tmp_path: Path) -> None:
    good, broken = tmp_path / "good.py", tmp_path / "broken.py"
    good.write_text("import time\ntime.sleep(1)\n" + module_text())
    broken.write_text("1 / 0\n" + module_text())
    with CapturesAhead(resolve_settings(home=tmp_path / "home")) as captures:
        begun = [captures.begin(path) for path in (good, broken, tmp_path / "missing.py")]
        captured, failed, missing = (capturing.result() for capturing in begun)
    assert isinstance(captured.outcome, Captured) and captured.outcome.problem.name == "good"
    assert captured.seconds > 1
    assert isinstance(failed.outcome, CaptureFailed) and "broken.py" in str(failed.outcome)
    assert isinstance(missing.outcome, BadInput) and "missing.py" in str(missing.outcome)
    assert missing.seconds < captured.seconds


def test_leaving_ends_a_capture_that_hangs_with_all_it_started(tmp_path: Path) -> None:
    path, note = tmp_path / "hangs.py", tmp_path / "pid"
    path.write_text(
        f"import os, time\npid = os.fork()\nif pid == 0:\n    time.sleep(600)\n"
        f"open({str(note)!r}, 'w').write(f'{{pid}} {{os.getpid()}} ')\ntime.sleep(600)\n{module_text()}"
    )
    with CapturesAhead(resolve_settings(home=tmp_path / "home")) as captures:
        capturing = captures.begin(path)
        deadline = time.monotonic() + 60
        while not (note.exists() and note.read_text().endswith(" ")) and time.monotonic() < deadline:
            time.sleep(0.02)
        started = time.monotonic()
    assert time.monotonic() - started < 10
    outcome = capturing.result(timeout=0).outcome
    assert isinstance(outcome, CaptureFailed) and "cancelled" in str(outcome)
    for pid in map(int, note.read_text().split()):
        assert _is_gone(pid)


def _is_gone(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            if ") Z " in Path(f"/proc/{pid}/stat").read_text():
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.02)
    return False
