"""A winner's soak: how many trials it passes, and what its time limit leaves of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from agents.schemas import Member
from graph.build import open_context, open_store
from graph.context import RunContext
from graph.session import start_run
from graph.settings import Settings, resolve_settings
from graph.soak import SOAK_BATCH, soak
from memory.records import Candidate, Origin, Program, Status
from tests.problems import KERNEL, module_text, scaled_relu_program
from tools.problem import parse_target
from tools.worker import EvaluationJob

TRIALS = 25


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunContext]:
    """A run of the example module that nobody has searched yet."""
    folder = tmp_path_factory.mktemp("soaked")
    (folder / "scaled.py").write_text(module_text(64, 48))
    settings: Settings = resolve_settings(
        home=folder / "home", export_dir=folder / "out", workers=1, soak_trials=TRIALS
    )
    with open_store(settings) as store:
        run = start_run(parse_target(str(folder / "scaled.py")), settings, store, lambda _: None)
        with open_context(run, store, settings, warm=False) as opened:
            yield opened


def judged(context: RunContext, program: Program, name: str) -> Member:
    candidate = Candidate(
        id=context.candidate_id(name),
        run_id=context.run.id,
        program_hash=program.content_hash(),
        parents=(),
        generation=0,
        origin=Origin(kind="outside", agent="test"),
        idea="one thread an element",
    )
    evaluation = context.pool.evaluate(EvaluationJob(program, context.case))
    assert evaluation is not None
    return Member(candidate, program, evaluation)


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
