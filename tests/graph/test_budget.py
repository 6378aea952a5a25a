"""Budgets stop a search for a reason that can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.allowance import Caps
from benchmarks.scale.measure import MODULE
from benchmarks.scale.synthetic import SyntheticPool
from graph.budget import Budget, Deadline, Spent
from graph.build import open_store
from graph.session import capture_target, continue_run, record_run
from graph.settings import resolve_settings
from memory.events import Spend
from memory.records import Evaluation, Stage
from tools.target import parse_target
from tools.worker import EvaluationJob


@pytest.mark.parametrize(
    ("generations", "spent", "reason"),
    [
        (0, Spent(0.0), None),
        (4, Spent(59.0, 29.0, Spend(9, 900, 99, 0.99)), None),
        (5, Spent(0.0), "all 5 generations"),
        (1, Spent(60.0), "budget of 60 s"),
        (9, Spent(99.0), "all 5"),
        (1, Spent(1.0, device_s=30.0), "30 s on the device"),
        (1, Spent(1.0, models=Spend(1, 600, 400, 0.0)), "1,000 tokens"),
        (1, Spent(1.0, models=Spend(1, 1, 1, 1.0)), "$1.00"),
    ],
)
def test_a_limit_that_is_reached_is_named(generations: int, spent: Spent, reason: str | None) -> None:
    found = Budget(5, 60.0, 30.0, Caps(tokens=1000, cost_usd=1.0)).exhausted(generations, spent)
    assert found is None if reason is None else found is not None and reason in found


def test_without_caps_only_generations_and_wall_time_end_a_search() -> None:
    rich = Spent(59.0, 1e9, Spend(10**6, 10**9, 10**9, 1e6))
    assert Budget(5, 60.0).exhausted(4, rich) is None


def test_a_deadline_passes_when_its_seconds_are_over() -> None:
    now = [100.0]
    deadline = Deadline(lambda: now[0])
    assert not deadline.passed and deadline.left_s() == float("inf")
    deadline.set(5.0)
    now[0] = 104.0
    assert deadline.left_s() == 1.0 and not deadline.passed
    now[0] = 105.0
    assert deadline.passed


def test_a_deadline_passes_too_when_the_seconds_on_the_device_are_used() -> None:
    deadline = Deadline(lambda: 0.0)
    deadline.set(5.0, 2.0)
    deadline.use_device(1.5)
    assert not deadline.passed
    deadline.use_device(0.5)
    assert deadline.passed and deadline.left_s() == 5.0
    deadline.set(5.0)
    deadline.use_device(1e9)
    assert not deadline.passed


class SlowPool(SyntheticPool):
    """Every verdict takes a second on the device, and some elsewhere."""

    def evaluate(self, job: EvaluationJob) -> Evaluation | None:
        """See EvaluationPool."""
        found = super().evaluate(job)
        seconds = {Stage.COMPILE.value: 5.0, Stage.SANITIZE.value: 0.25, Stage.TIMING.value: 0.75}
        return found.model_copy(update={"seconds": seconds}) if found is not None else None


@pytest.mark.parametrize(("budget_s", "judged"), [(10.0, range(10, 13)), (None, range(16, 17))])
def test_no_program_is_judged_once_the_devices_seconds_are_used(
    tmp_path: Path, budget_s: float | None, judged: range
) -> None:
    """Those under way are finished, and so is the first generation, which has eight."""
    settings = resolve_settings(
        home=tmp_path, export_dir=tmp_path / "out", device="simulator", population=8, generations=2, patience=99,
        soak_trials=0, device_budget_s=budget_s,
    )  # fmt: skip
    pool = SlowPool(settings.device_spec.name)
    captured = capture_target(parse_target(str(MODULE)), settings)
    with open_store(settings) as store:
        run = record_run(captured, settings, store)
        continue_run(run, store, settings, lambda _: None, pool=pool)
    assert len(pool.asked) in judged
