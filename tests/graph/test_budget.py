"""Budgets stop a search for a reason that can be read."""

from __future__ import annotations

import pytest

from graph.budget import Budget


@pytest.mark.parametrize(
    ("generations", "spent_s", "reason"),
    [
        (0, 0.0, None),
        (4, 59.0, None),
        (5, 0.0, "all 5 generations"),
        (1, 60.0, "budget of 60 s"),
        (9, 99.0, "all 5"),
    ],
)
def test_a_limit_that_is_reached_is_named(generations: int, spent_s: float, reason: str | None) -> None:
    found = Budget(5, 60.0).exhausted(generations, spent_s)
    assert found is None if reason is None else found is not None and reason in found
