"""Whole runs with real parts: capture, simulator, store, archive, export; killed, resumed, reviewed, repeated."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from graph.interrupts import descendants
from tests.problems import module_text

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["--population", "4", "--generations", "3", "--soak", "10", "--workers", "1", "--quiet"]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a module to optimize; runs of this file share its home, as a user's would."""
    folder = tmp_path_factory.mktemp("workplace")
    (folder / "scaled.py").write_text(module_text(2048, 512))
    yield folder


def warpsmith(folder: Path, *arguments: str, home: str = "home") -> subprocess.CompletedProcess[str]:
    """Run the command line as a user would, in `folder`."""
    return subprocess.run(
        command(*arguments),
        cwd=folder,
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=280,
    )


def start(folder: Path, *arguments: str, home: str) -> subprocess.Popen[str]:
    """Begin a command, in a session of its own as a terminal would."""
    return subprocess.Popen(
        command(*arguments), cwd=folder, env=environment(home), start_new_session=True, text=True,
        # As a terminal would have it; a test run in the background of a script has interrupts ignored.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


def wait_for(happened: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Wait until something has happened. Fails where the process ends first."""
    deadline = time.monotonic() + 120
    while not happened():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "graph.cli", *arguments]


def environment(home: str) -> dict[str, str]:
    # A relative home, as a user may give one.
    kept = {n: v for n, v in os.environ.items() if not n.startswith("WARPSMITH_")}
    return {**kept, "PYTHONPATH": str(ROOT), "WARPSMITH_HOME": str(home), "OMP_NUM_THREADS": "1"}


def optimize(folder: Path, *arguments: str, home: str = "home") -> tuple[int, dict[str, Any]]:
    done = warpsmith(folder, "optimize", "scaled.py", "--json", *SMALL, *arguments, home=home)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def first(workplace: Path) -> dict[str, Any]:
    code, summary = optimize(workplace)
    assert code == 0, summary
    return summary


def test_a_run_ends_with_one_json_object_that_says_everything(first: dict[str, Any]) -> None:
    assert set(first) == {
        "run", "status", "device", "measured", "baseline_us", "best_us", "floor_us", "speedup", "evaluations",
        "by_status", "why_not", "program_path", "export_path", "spend",
    }  # fmt: skip
    assert first["status"] == "improved"
    assert first["why_not"] is None
    assert first["device"] == "simulator:h200"
    assert first["measured"] is False
    assert first["floor_us"] < first["best_us"] < first["baseline_us"]
    assert first["speedup"] == pytest.approx(first["baseline_us"] / first["best_us"])
    assert sum(first["by_status"].values()) == first["evaluations"] > 0


def test_the_winner_is_judged_passed_from_outside(workplace: Path, first: dict[str, Any]) -> None:
    done = warpsmith(workplace, "verify", first["program_path"], "--problem", "scaled.py", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["status"] == "passed"


def test_a_spoilt_winner_is_judged_incorrect_from_outside(workplace: Path, first: dict[str, Any]) -> None:
    program = json.loads(Path(first["program_path"]).read_text())
    assert "* weight" in program["source"], program["source"]
    program["source"] = program["source"].replace("* weight", "+ weight")
    (workplace / "spoilt.json").write_text(json.dumps(program))
    done = warpsmith(workplace, "verify", "spoilt.json", "--problem", "scaled.py", "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["status"] == "incorrect"


def test_the_export_runs_anywhere_and_equals_the_module(workplace: Path, first: dict[str, Any]) -> None:
    check = (
        "import sys, runpy, torch\n"
        "space = runpy.run_path(sys.argv[1])\n"
        "torch.manual_seed(3); old = space['Model'](*space['get_init_inputs']())\n"
        "new = space['ModelNew'](*space['get_init_inputs']()); new.load_state_dict(old.state_dict())\n"
        "x = space['get_inputs']()[0]; assert torch.equal(old(x), new(x))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", check, first["export_path"]],
        cwd=workplace,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_the_archive_finds_the_winner_by_words(workplace: Path, first: dict[str, Any]) -> None:
    done = warpsmith(workplace, "archive", "search", "multiply and relu, fp32", "--json")
    hits = json.loads(done.stdout)
    assert hits[0]["innovation"]["provenance"]["run_id"] == first["run"]
    assert hits[0]["innovation"]["provenance"]["time_source"] == "modelled"
    stats = json.loads(warpsmith(workplace, "archive", "stats", "--json").stdout)
    assert stats["total"] == 1


def test_a_second_run_recalls_the_winner_and_reuses_its_verdict(
    workplace: Path, first: dict[str, Any]
) -> None:
    started = time.monotonic()
    code, again = optimize(workplace)
    assert code == 0
    assert again["run"] != first["run"]
    assert again["best_us"] <= first["best_us"]
    shown = warpsmith(workplace, "show", again["run"])
    assert "recalled" in shown.stdout.replace("\n", " ")
    assert time.monotonic() - started < 120


def test_runs_are_listed_and_shown(workplace: Path, first: dict[str, Any]) -> None:
    listed = json.loads(warpsmith(workplace, "show", "--json").stdout)
    assert first["run"] in {r["run"] for r in listed}
    shown = json.loads(warpsmith(workplace, "show", first["run"], "--json").stdout)
    candidates, decisions = shown.pop("candidates"), shown.pop("decisions")
    assert shown == first
    assert len(candidates) == first["evaluations"]
    assert set(candidates[0]) == {
        "id", "origin", "idea", "generation", "parents", "status", "speedup", "median_us", "program_hash",
    }  # fmt: skip
    assert first["best_us"] in [c["median_us"] for c in candidates if c["status"] == "passed"]
    known = {c["id"] for c in candidates}
    assert {parent for c in candidates for parent in c["parents"]} <= known
    assert [d["role"] for d in decisions][:3] == ["planner", "planner", "coder"]
    assert decisions[-1]["decision"].startswith("archived as")
    assert [d["at"] for d in decisions] == sorted(d["at"] for d in decisions)


def test_a_winner_can_be_exported_again(workplace: Path, first: dict[str, Any]) -> None:
    done = warpsmith(workplace, "export", first["run"], "--out", "elsewhere", "--json")
    assert done.returncode == 0, done.stderr
    again = Path(json.loads(done.stdout)["export_path"])
    assert again.parent == workplace / "elsewhere"
    assert again.read_text().count("class ModelNew") == 1


def evaluations(home: Path) -> dict[str, str]:
    """Program hash -> verdict body, read behind the program's back."""
    path = home / "store.db"
    if not path.exists():
        return {}
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)
    try:
        return dict(connection.execute("SELECT program_hash, body FROM evaluations").fetchall())
    except sqlite3.OperationalError:
        return {}
    finally:
        connection.close()


@pytest.mark.parametrize("kill_after", [1, 5])
def test_a_killed_run_resumes_without_losing_or_repeating_a_verdict(workplace: Path, kill_after: int) -> None:
    home = workplace / f"killed-{kill_after}"
    with start(workplace, "optimize", "scaled.py", *SMALL, home=home.name) as process:
        wait_for(lambda: len(evaluations(home)) >= kill_after, process)
        os.killpg(process.pid, signal.SIGKILL)
    before = evaluations(home)
    assert len(before) >= kill_after
    run = json.loads(warpsmith(workplace, "show", "--json", home=home.name).stdout)[0]
    assert run["status"] == "interrupted"
    assert f"warpsmith resume {run['run']}" in warpsmith(workplace, "show", run["run"], home=home.name).stdout
    done = warpsmith(workplace, "resume", run["run"], "--json", "--quiet", home=home.name)
    assert done.returncode == 0, done.stderr
    # Nothing of the checkpoints is of a type that langgraph does not know.
    assert done.stderr == ""
    after = evaluations(home)
    # A verdict carries its own wall times: had a program been judged twice, its body would differ.
    assert {h: body for h, body in after.items() if h in before} == before
    assert sqlite3.connect(home / "store.db").execute("PRAGMA integrity_check").fetchone() == ("ok",)
    ended = warpsmith(workplace, "resume", run["run"], home=home.name)
    assert ended.returncode == 2
    assert "has ended" in ended.stderr


def test_a_run_that_asks_for_review_waits_and_continues_with_the_answer(workplace: Path) -> None:
    done = warpsmith(workplace, "optimize", "scaled.py", "--json", "--review", *SMALL, home="reviewed")
    summary = json.loads(done.stdout)
    assert done.returncode == 3
    assert summary["status"] == "in_review"
    assert "waits for review" in done.stderr
    assert summary["export_path"] is None
    answered = warpsmith(
        workplace,
        "resume",
        summary["run"],
        "--approve",
        "--note",
        "fine",
        "--json",
        "--quiet",
        home="reviewed",
    )
    assert answered.returncode == 0, answered.stderr
    assert json.loads(answered.stdout)["export_path"]


def test_a_rejected_winner_is_not_exported(workplace: Path) -> None:
    done = warpsmith(workplace, "optimize", "scaled.py", "--json", "--review", *SMALL, home="rejected")
    run = json.loads(done.stdout)["run"]
    candidate = done.stderr.split(" waits for review")[0].split()[-1]
    answered = warpsmith(workplace, "resume", run, "--reject", "--note", "ugly", "--quiet", home="rejected")
    # The next best candidate is proposed in its place.
    assert candidate not in answered.stderr


def test_an_answer_to_a_run_that_does_not_wait_is_refused(workplace: Path) -> None:
    home = workplace / "unasked"
    with start(workplace, "optimize", "scaled.py", *SMALL, home=home.name) as process:
        wait_for(lambda: evaluations(home), process)
        os.killpg(process.pid, signal.SIGKILL)
    done = warpsmith(workplace, "resume", "scaled", "--approve", home=home.name)
    assert done.returncode == 2
    assert "does not wait for review" in done.stderr
    [run] = json.loads(warpsmith(workplace, "show", "--json", home=home.name).stdout)
    assert run["status"] == "interrupted"


def test_a_second_process_is_refused_and_one_that_was_killed_leaves_neither_a_lock_nor_workers(
    workplace: Path,
) -> None:
    home = workplace / "shared"
    with start(workplace, "optimize", "scaled.py", *SMALL, home=home.name) as process:
        wait_for(lambda: len(evaluations(home)) >= 2, process)
        [run] = json.loads(warpsmith(workplace, "show", "--json", home=home.name).stdout)
        assert run["status"] == "running"
        refused = warpsmith(workplace, "resume", run["run"], "--quiet", home=home.name)
        assert process.poll() is None
        assert (refused.returncode, refused.stdout) == (1, "")
        [said] = refused.stderr.splitlines()
        assert said.startswith(f"warpsmith: run '{run['run']}' is being worked on by pid {process.pid} on ")
        assert said.endswith("; wait for it, stop it, or start another run")
        started = descendants(process.pid)
        os.kill(process.pid, signal.SIGKILL)
    before = evaluations(home)
    done = warpsmith(workplace, "resume", run["run"], "--quiet", home=home.name)
    assert (done.returncode, done.stderr) == (0, "")
    assert before.items() <= evaluations(home).items()
    assert started and all(ended(pid) for pid in started)


def ended(pid: int) -> bool:
    """True once a process is gone; it is not ours to wait for, and a zombie counts as gone."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if ") Z " in Path(f"/proc/{pid}/stat").read_text():
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False
