"""Budgets stop a search for a reason that can be read."""

from __future__ import annotations

import pytest

from agents.allowance import Caps
from graph.budget import Budget, Deadline, Spent
from memory.events import Spend


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
