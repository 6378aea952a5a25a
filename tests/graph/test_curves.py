"""A run's course as numbers, against fitness reckoned one by one; and what a run has used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from graph.curves import curve, levels, thinned
from graph.evolution import Fitness
from graph.gauges import Gauge, gauges, given_limits, machine_bytes, memory_bytes
from graph.session import checkpointed, waiting_runs
from graph.settings import resolve_settings
from memory.records import Status
from memory.store import Store
from memory.store_views import GenerationLine
from tests.memory import made
from tests.ui.crowded import crowd


def test_the_mean_fitness_of_a_generation_is_that_of_its_verdicts(tmp_path: Path) -> None:
    run = crowd(tmp_path, 30, per_generation=15)
    with Store(tmp_path / "store.db") as store:
        lines, rows = store.by_generation(run.id), store.evaluated(run.id)
    fitness = Fitness(0.6, 0.4)
    points = curve(lines, fitness, 5.0)
    for point in points:
        each = [
            fitness.of(r.evaluation)
            for r in rows
            if r.evaluation is not None and r.candidate.generation == point.generation
        ]
        assert point.mean_fitness == pytest.approx(sum(each) / len(each))
        assert point.best_fitness == pytest.approx(max(each))


def test_a_generation_without_a_verdict_has_no_fitness() -> None:
    (point,) = curve([GenerationLine(0, 3, {}, {}, None, None, 0.0)], Fitness(), 5.0)
    assert (point.best_fitness, point.mean_fitness, point.best_us) == (None, None, None)


def test_a_long_run_is_drawn_by_every_so_many_generations_and_its_last() -> None:
    lines = [GenerationLine(n, 1, {Status.PASSED: 1}, {}, 1.0, 1.0, 1.0) for n in range(1001)]
    drawn = thinned(lines, 100)
    assert len(drawn) <= 102
    assert (drawn[0].generation, drawn[-1].generation) == (0, 1000)
    assert thinned(lines[:50], 100) == lines[:50]
    assert thinned([], 100) == []


def test_the_floor_is_a_level_only_where_there_is_one() -> None:
    timing = made.timing(50.0)
    assert [level.name for level in levels(timing)] == ["eager PyTorch", "floor"]
    assert [level.us for level in levels(timing.model_copy(update={"floor_us": 0.0}))] == [100.0]


def test_gauges_of_a_run_that_nobody_works_on(tmp_path: Path) -> None:
    run = crowd(tmp_path, 10)
    settings = resolve_settings(home=tmp_path, device="simulator")
    with Store(tmp_path / "store.db") as store:
        store.put_event(made.event("call", tokens=500, run_id=run.id))
        found = {gauge.name: gauge for gauge in gauges(run, store, settings, None, judged=10)}
        assert checkpointed(run, settings) is None
        assert waiting_runs(store, settings) == []
    assert list(found) == ["Wall time", "Device", "Evaluations", "Tokens", "Cost"]
    assert found["Wall time"].text == "0 s of 900 s"
    assert found["Evaluations"].text == "10, no limit"
    assert (found["Tokens"].used, found["Tokens"].share) == (1000, None)
    assert found["Cost"].text == "0.2500 USD, no limit"


def test_a_share_is_never_more_than_all() -> None:
    assert Gauge("Wall time", 30.0, 20.0, "").share == 1.0
    assert Gauge("Wall time", 5.0, 20.0, "").share == 0.25


def test_limits_and_memory_are_those_of_the_process_and_its_children() -> None:
    words = ["resume", "run", "--budget-s", "120.0", "--generations", "7", "--note=--budget-s"]
    grandchild = "x = b'x' * (64 << 20); print(1, flush=True); input()"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {grandchild!r}])"
    process = subprocess.Popen(
        [sys.executable, "-c", child, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == b"1\n"
        assert given_limits(process.pid) == {"--budget-s": 120.0, "--generations": 7.0}
        assert 64 << 20 < memory_bytes(process.pid) < machine_bytes()
    finally:
        process.communicate(b"\n")
    assert given_limits(process.pid) == {}
    assert memory_bytes(process.pid) == 0
    assert memory_bytes(os.getpid()) > 0
