"""A winner's soak: how many trials it passes, and what its time limit leaves of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from graph.context import RunContext
from graph.soak import SOAK_BATCH, soak
from memory.records import Status
from tests.graph.opened import judged, opened_run
from tests.problems import KERNEL, scaled_relu_program

TRIALS = 25


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunContext]:
    """A run of the example module that nobody has searched yet."""
    with opened_run(tmp_path_factory.mktemp("soaked"), soak_trials=TRIALS) as opened:
        yield opened


def limited(context: RunContext, soak_s: float) -> RunContext:
    return replace(context, settings=context.settings.model_copy(update={"soak_s": soak_s}))


def test_a_soak_makes_all_its_trials_where_time_allows(context: RunContext) -> None:
    told: list[int] = []
    outcome = soak(judged(context, scaled_relu_program(), "honest"), limited(context, 300.0), told.append)
    assert (outcome.failure, outcome.trials, outcome.full_shape_trials) == (None, TRIALS, TRIALS)
    assert told == [10, 20, 25]


def test_a_soak_whose_time_is_over_ends_with_what_it_has_passed(context: RunContext) -> None:
    told: list[int] = []
    outcome = soak(judged(context, scaled_relu_program(), "late"), limited(context, 1e-6), told.append)
    assert (outcome.failure, outcome.trials, told) == (None, SOAK_BATCH, [SOAK_BATCH])


def test_a_rare_fault_is_found_within_the_time(context: RunContext) -> None:
    # Right unless an input is exactly zero, which only one distribution draws.
    source = KERNEL.replace("y[i] =", "y[i] = (x[i] == 0.0f) ? 1.0f :")
    program = scaled_relu_program(source)
    honest = judged(context, scaled_relu_program(), "model")
    outcome = soak(replace(honest, program=program), limited(context, 300.0), lambda _: None)
    assert outcome.failure is not None and outcome.failure.status is Status.INCORRECT
