"""Ctrl-C in a terminal: the whole foreground group gets the signal, and one line is all that is left to read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from graph.interrupts import descendants, interruptible
from tests.graph.test_run import SMALL, ended, evaluations, start, wait_for, warpsmith
from tests.problems import module_text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a module, alone in a folder of problems."""
    (tmp_path / "problems").mkdir()
    (tmp_path / "problems" / "scaled.py").write_text(module_text(2048, 512))
    return tmp_path


def press(process: subprocess.Popen[str]) -> str:
    """Interrupt the process's group; returns what it still said. Fails where something that it started lives on."""
    started = descendants(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=10)[1]
    assert process.returncode == 130
    assert "Traceback" not in said
    for pid in started:
        assert ended(pid), pid
    return said


def statuses(folder: Path) -> list[str]:
    return [run["status"] for run in json.loads(warpsmith(folder, "show", "--json").stdout)]


def test_an_interrupted_run_says_how_to_continue_and_can_be(folder: Path) -> None:
    with start(folder, "optimize", "problems/scaled.py", *SMALL, home="home") as process:
        wait_for(lambda: evaluations(folder / "home"), process)
        assert statuses(folder) == ["running"]
        said = press(process)
    [run] = json.loads(warpsmith(folder, "show", "--json").stdout)
    assert said == f"warpsmith: interrupted; continue with `warpsmith resume {run['run']}`\n"
    assert run["status"] == "interrupted"
    assert "interrupted" in warpsmith(folder, "show").stdout
    with start(folder, "resume", run["run"], "--quiet", home="home") as process:
        wait_for(lambda: statuses(folder) == ["running"], process)
        assert press(process) == said
    done = warpsmith(folder, "resume", run["run"], "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert statuses(folder) == ["improved"]


def test_an_interrupt_while_children_start_reaches_none_of_them(folder: Path) -> None:
    with start(folder, "optimize", "problems/scaled.py", "--workers", "2", home="home") as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "drawing trials" in line:
                break
        # The workers are importing now: an interrupt that reached them would be printed with a traceback.
        assert len(descendants(process.pid)) >= 3
        assert press(process).startswith("warpsmith: interrupted; continue with")


def test_an_interrupt_before_there_is_a_run_leaves_none(folder: Path) -> None:
    with start(folder, "optimize", "problems/scaled.py", home="home") as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "capturing the module\n"
        assert press(process) == "warpsmith: interrupted; no run was begun\n"
    assert statuses(folder) == []


def test_an_interrupted_benchmark_says_how_to_continue(folder: Path) -> None:
    with start(folder, "bench", "problems", "--quiet", home="home") as process:
        wait_for(lambda: evaluations(folder / "home"), process)
        assert press(process) == "warpsmith: interrupted; the same command continues\n"


def test_an_interrupted_benchmark_leaves_no_capture_that_was_made_ahead(folder: Path) -> None:
    note = folder / "pid"
    (folder / "problems" / "zeta.py").write_text(
        f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n{module_text()}"
    )
    with start(folder, "bench", "problems", "--quiet", home="home") as process:
        wait_for(lambda: evaluations(folder / "home") and note.exists(), process)
        assert int(note.read_text()) in descendants(process.pid)
        assert press(process) == "warpsmith: interrupted; the same command continues\n"


def test_outside_interrupts_mean_what_they_meant_before() -> None:
    # A test run started in the background of a script has interrupts ignored.
    outer = signal.signal(signal.SIGINT, signal.default_int_handler)
    before = signal.getsignal(signal.SIGINT)
    with interruptible("nothing"):
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert signal.getsignal(signal.SIGINT) is before
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, outer)


def test_descendants_are_found_through_children() -> None:
    nested = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    with subprocess.Popen([sys.executable, "-c", nested]) as child:
        deadline = time.monotonic() + 30
        while len(found := descendants(child.pid)) < 1 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(found) == 1 and set(found) < set(descendants(os.getpid()))
        os.kill(found[0], signal.SIGKILL)
    assert child.returncode == 0
