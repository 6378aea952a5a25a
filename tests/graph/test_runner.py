"""Work on runs in processes of their own: it outlives its starter, can be stopped at any moment, and leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.schemas import short_id
from graph.build import open_store, store_path
from graph.interrupts import descendants
from graph.runner import Runner
from graph.session import find_summary, rollback_target, start_run
from graph.settings import Settings, resolve_settings
from memory.errors import BadInput
from memory.lock import RunLock
from memory.records import Run
from tests.graph.test_run import ROOT, environment, evaluations
from tests.problems import module_text
from tools.problem import parse_target


def settings_in(folder: Path) -> Settings:
    """Settings of a short search on the simulator."""
    return resolve_settings(
        home=folder / "home", export_dir=folder / "out", device="simulator", generations=1, population=2,
        soak_trials=2, workers=1, verify_elements=4096,
    )  # fmt: skip


def new_run(folder: Path) -> tuple[Run, Settings]:
    """A recorded run that nobody works on yet."""
    (folder / "scaled.py").write_text(module_text(2048, 512))
    settings = settings_in(folder)
    with open_store(settings) as store:
        run = start_run(parse_target(str(folder / "scaled.py")), settings, store, lambda _: None)
    return run, settings


def until(happened: Callable[[], object], timeout_s: float = 120.0) -> None:
    """Wait until something has happened."""
    deadline = time.monotonic() + timeout_s
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def status_of(run: Run, settings: Settings) -> str:
    with open_store(settings) as store:
        return find_summary(store.run(run.id), store, settings).status


def gone(pid: int) -> bool:
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_work_outlives_a_starter_that_is_killed(tmp_path: Path) -> None:
    run, settings = new_run(tmp_path)
    starter = (
        "import sys, time; from graph.runner import Runner; from graph.settings import resolve_settings\n"
        "print(Runner(resolve_settings(home=sys.argv[1])).start(sys.argv[2]), flush=True); time.sleep(600)\n"
    )
    command = [sys.executable, "-c", starter, str(settings.root), run.id]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(str(settings.root)), stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        os.killpg(process.pid, signal.SIGKILL)
    runner = Runner(settings)
    assert runner.worker(run.id) == pid
    until(lambda: runner.worker(run.id) is None)
    assert status_of(run, settings) == "improved", runner.last_words(run.id)
    assert (tmp_path / "out" / f"{run.id}.py").exists()
    until(lambda: gone(pid))
    assert "improved" in runner.last_words(run.id, limit=5000)


def test_stopping_leaves_no_process_and_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    run, settings = new_run(tmp_path)
    runner = Runner(settings)
    assert runner.stop(run.id) is False
    pid = runner.start(run.id)
    with pytest.raises(BadInput, match=f"worked on by process {pid}"):
        runner.start(run.id)
    until(lambda: evaluations(settings.root))
    started = [pid, *descendants(pid)]
    assert runner.stop(run.id) is True
    assert runner.worker(run.id) is None
    for one in started:
        until(lambda one=one: gone(one), 10)  # type: ignore[misc]
    assert status_of(run, settings) == "interrupted"
    assert "continue with `warpsmith resume" in runner.last_words(run.id)
    before = evaluations(settings.root)
    runner.start(run.id)
    until(lambda: runner.worker(run.id) is None)
    assert status_of(run, settings) == "improved", runner.last_words(run.id)
    assert before.items() <= evaluations(settings.root).items()


def test_work_that_has_only_just_begun_can_be_stopped(tmp_path: Path) -> None:
    run, settings = new_run(tmp_path)
    runner = Runner(settings)
    old = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pid = runner.start(run.id)
    finally:
        signal.signal(signal.SIGINT, old)
    assert runner.worker(run.id) == pid
    assert runner.stop(run.id) is True
    assert gone(pid) and runner.worker(run.id) is None
    assert evaluations(settings.root) == {}
    assert status_of(run, settings) == "interrupted"
    assert "Traceback" not in runner.last_words(run.id)


def test_a_record_of_another_process_with_the_same_pid_is_not_believed(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    folder = settings.root / "runs" / "a-run"
    folder.mkdir(parents=True)
    runner = Runner(settings)
    for text in (
        f'{{"pid": {os.getpid()}, "born": "1"}}',
        f'{{"pid": {os.getpid()}, "born": null}}',
        "{",
        "[]",
        "",
    ):
        (folder / "work.json").write_text(text)
        assert runner.worker("a-run") is None, text
    assert runner.stop("a-run") is False


def test_a_run_that_this_process_works_on_is_not_interrupted_by_itself(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with RunLock(store_path(settings), "a-run"), pytest.raises(BadInput, match="by this process itself"):
        Runner(settings).stop("a-run")


def test_the_work_does_not_depend_on_the_folder_it_is_started_in(tmp_path: Path) -> None:
    assert (ROOT / "graph" / "cli.py").exists()
    runner = Runner(settings_in(tmp_path))
    runner.start("no-such-run")
    until(lambda: runner.worker("no-such-run") is None)
    assert "no run has an id that begins with 'no-such-run'" in runner.last_words("no-such-run")


def test_a_run_is_rolled_back_to_an_earlier_winner_by_a_process_of_its_own(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with open_store(settings) as store:  # a module for which two candidates win
        target = parse_target(str(ROOT / "examples" / "layernorm_gelu.py"))
        run = start_run(target, settings, store, lambda _: None)
    runner = Runner(settings)
    runner.start(run.id)
    until(lambda: runner.worker(run.id) is None)
    with open_store(settings) as store:
        ended = store.run(run.id)
        passed = [
            row.candidate.id for row in store.evaluated(run.id) if row.evaluation and row.evaluation.timing
        ]
        assert ended.best_candidate in passed and len(passed) >= 2, runner.last_words(run.id)
        earlier = next(candidate for candidate in passed if candidate != ended.best_candidate)
        with pytest.raises(BadInput, match="is the winner of run"):
            rollback_target(ended, ended.best_candidate, store, settings)
        assert rollback_target(ended, short_id(earlier), store, settings) == earlier
    runner.roll_back(run.id, earlier, note="reads better; 'quoted' --and-dashed")
    with pytest.raises(BadInput, match="worked on by process"):
        runner.roll_back(run.id, earlier)
    until(lambda: runner.worker(run.id) is None)
    with open_store(settings) as store:
        assert store.run(run.id).best_candidate == earlier, runner.last_words(run.id)
        assert store.reviews_of_run(run.id)[-1].note == "reads better; 'quoted' --and-dashed"
