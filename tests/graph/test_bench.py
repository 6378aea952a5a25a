"""The benchmark harness with real runs on the simulator: three problems, a kill, and what is repeated afterwards."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from graph.bench import ProblemFinished, lock_name, machine_line, run_bench
from graph.bench_records import BenchEntry, BenchResults, BenchStatus, read_results
from graph.build import open_store
from graph.settings import resolve_settings
from memory.lock import RunLock
from tests.graph.test_cli import LIBRARY_BOUND
from tests.graph.test_run import ROOT, environment
from tests.problems import module_text

BROKEN = module_text().replace("return torch.relu", "raise ValueError('no luck'); return torch.relu")


@dataclass
class Benchmark:
    """A folder of problems with its results file and home."""

    place: Path

    @property
    def folder(self) -> Path:
        return self.place / "problems"

    @property
    def out(self) -> Path:
        return self.place / "out" / "results.json"

    @property
    def results(self) -> BenchResults:
        return read_results(self.out)

    def entry(self, name: str) -> BenchEntry:
        return next(entry for entry in self.results.entries if entry.name == name)

    def command(self, *only: str) -> list[str]:
        where = (str(self.folder), str(self.out), str(self.place / "home"))
        return [sys.executable, "-m", "tests.graph.benching", *where, *only]

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command(), cwd=ROOT, env=environment(str(self.place / "home")), start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def run(self, *only: str) -> dict[str, bool]:
        """Run to the end; names of the problems in order, True where their entry was reused."""
        done = subprocess.run(
            self.command(*only), cwd=ROOT, env=environment(str(self.place / "home")), capture_output=True,
            text=True, timeout=280,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said = [json.loads(line) for line in done.stdout.splitlines()]
        assert [line["position"] for line in said] == list(range(1, len(said) + 1))
        return {line["name"]: line["reused"] for line in said}


@dataclass(frozen=True)
class Resumed:
    """What a benchmark that was killed had left, and what the next one did."""

    benchmark: Benchmark
    left: BenchResults
    reused: dict[str, bool]


@pytest.fixture(scope="module")
def resumed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resumed]:
    """Killed with the first problem finished and the second begun; then run to its end."""
    benchmark = Benchmark(tmp_path_factory.mktemp("bench"))
    texts = {
        "level1/2_scaled": module_text(2048, 512),
        "level1/10_product": LIBRARY_BOUND,
        "level2/1_broken": BROKEN,
    }
    for name, text in {**texts, "level1/_shared": LIBRARY_BOUND, "level1/notes": "x = 1\n"}.items():
        path = benchmark.folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    process = benchmark.start()
    deadline = time.monotonic() + 120
    while not _second_has_begun(benchmark) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    left = benchmark.results
    yield Resumed(benchmark, left, benchmark.run())


def _second_has_begun(benchmark: Benchmark) -> bool:
    return benchmark.out.exists() and len(benchmark.results.entries) == 2


def test_a_killed_benchmark_repeats_nothing_and_resumes_the_run_that_was_cut_short(resumed: Resumed) -> None:
    first, second = resumed.left.entries
    assert (first.name, first.status) == ("level1/2_scaled", BenchStatus.IMPROVED)
    assert (second.name, second.status) == ("level1/10_product", BenchStatus.RUNNING)
    assert list(resumed.reused.items()) == [
        ("level1/2_scaled", True), ("level1/10_product", False), ("level2/1_broken", False),
    ]  # fmt: skip
    assert resumed.benchmark.entry(first.name) == first
    assert second.run is not None
    assert resumed.benchmark.entry(second.name).run == second.run


def test_an_improved_problem_says_how_fast_and_where_its_time_goes(resumed: Resumed) -> None:
    entry = resumed.benchmark.entry("level1/2_scaled")
    assert entry.eager is not None
    assert entry.ours is not None
    assert entry.floor_us is not None
    assert entry.floor_us < entry.ours.median_us < entry.eager.median_us
    assert entry.speedup == pytest.approx(entry.eager.median_us / entry.ours.median_us)
    assert entry.floor_fraction == pytest.approx(entry.floor_us / entry.ours.median_us)
    assert entry.authored_share == 1.0
    assert (entry.time_source, entry.device, entry.machine) == ("modelled", "simulator:h200", machine_line())
    assert entry.evaluations > 0
    assert entry.seconds > 0


def test_a_problem_that_the_library_serves_best_is_not_improved(resumed: Resumed) -> None:
    entry = resumed.benchmark.entry("level1/10_product")
    assert entry.status is BenchStatus.NOT_IMPROVED
    assert entry.message is None


def test_a_broken_problem_fails_with_its_message_and_without_the_machines_paths(resumed: Resumed) -> None:
    entry = resumed.benchmark.entry("level2/1_broken")
    assert (entry.status, entry.fault, entry.finished) == (BenchStatus.FAILED, "input", True)
    assert entry.message is not None
    assert "no luck" in entry.message
    assert entry.message.startswith("level2/1_broken.py:")
    assert str(resumed.benchmark.place) not in resumed.benchmark.out.read_text()


def test_a_finished_benchmark_does_only_what_has_changed(resumed: Resumed) -> None:
    benchmark = resumed.benchmark
    before = benchmark.results.entries
    path = benchmark.folder / "level2" / "1_broken.py"
    assert set(benchmark.run().values()) == {True}
    path.write_text(BROKEN.replace("no luck", "still none"))
    assert benchmark.run("level2/*") == {"level2/1_broken": False}
    after = benchmark.results.entries
    assert after[:2] == before[:2]
    assert "still none" in (after[2].message or "")


def test_all_problems_share_one_pool_and_the_next_is_captured_while_one_runs(tmp_path: Path) -> None:
    folder = tmp_path / "problems"
    folder.mkdir()

    def noting(name: str) -> str:
        return f"import time\nwith open({str(tmp_path / name)!r}, 'a') as note:\n    print(time.time(), file=note)\n"

    texts = {
        "1_scaled": module_text(2048, 512),
        "2_product": noting("second") + LIBRARY_BOUND,
        "3_broken": noting("third") + "time.sleep(1)\n" + BROKEN,
    }
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    settings = resolve_settings(
        home=tmp_path / "home",
        export_dir=tmp_path / "kernels",
        population=2,
        generations=1,
        soak_trials=5,
        workers=1,
    )
    finished: dict[str, float] = {}
    workers: list[set[int | None]] = []

    def listen(event: object) -> None:
        if isinstance(event, ProblemFinished):
            finished[event.entry.name] = time.time()
            workers.append({process.pid for process in multiprocessing.active_children()})

    with open_store(settings) as store:
        results = run_bench(folder, tmp_path / "results.json", settings, store, listen)
    assert [entry.status for entry in results.entries] == [
        BenchStatus.IMPROVED, BenchStatus.NOT_IMPROVED, BenchStatus.FAILED,
    ]  # fmt: skip
    second, third = (float((tmp_path / name).read_text().split()[0]) for name in ("second", "third"))
    assert second < finished["1_scaled"] < finished["2_product"]
    assert len(workers[0]) == 1 and workers == [workers[0]] * 3
    assert multiprocessing.active_children() == []
    # The broken one was captured while the second ran, and its second of sleep is its own.
    broken = results.entries[2]
    assert "no luck" in (broken.message or "") and broken.fault == "input"
    assert third < finished["2_product"] and broken.seconds > 1


def test_two_benchmarks_do_not_write_to_one_file(resumed: Resumed) -> None:
    benchmark = resumed.benchmark
    with RunLock(benchmark.place / "home" / "store.db", lock_name(benchmark.out)):
        done = subprocess.run(
            benchmark.command(), cwd=ROOT, env=environment(str(benchmark.place / "home")), capture_output=True,
            text=True, timeout=120,
        )  # fmt: skip
    assert done.returncode != 0
    assert "results.json" in done.stderr
    assert f"pid {os.getpid()}" in done.stderr


def test_the_report_lies_beside_the_results(resumed: Resumed) -> None:
    text = resumed.benchmark.out.with_suffix(".md").read_text()
    assert "1 improved, 1 not improved (PyTorch is kept), 1 failed, of 3." in text
    assert "**modelled**" in text
    assert "measured**" not in text
    assert machine_line() in text
    ElementTree.parse(resumed.benchmark.out.with_suffix(".svg"))
