"""Runs of many candidates put into a store directly, as a long search leaves them: what a page must be quick with."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from graph.session import record_run
from graph.settings import resolve_settings
from graph.summary import policy_hash
from memory.records import Candidate, Diagnostic, Evaluation, Origin, Run, Stage, Status
from memory.store import Store
from tests.members import passed
from tests.problems import scaled_relu_problem, scaled_relu_program
from tools.problem import Captured

FAIL_EVERY = 10


def crowd(home: Path, candidates: int, *, per_generation: int = 100, islands: int = 4, idea: str = "") -> Run:
    """A run that nobody works on. Every tenth candidate is incorrect; the others get faster from 100 µs on."""
    home.mkdir(parents=True, exist_ok=True)
    settings = resolve_settings(home=home, device="simulator", population=per_generation, generations=1000)
    with closing(Store(home / "store.db")) as store:
        run = record_run(Captured(scaled_relu_problem(), None), settings, store)
        judged_under = policy_hash(run)
        with store.together():
            for number in range(candidates):
                generation, island = number // per_generation, number % islands
                _put(store, run, judged_under, number, generation, island, idea)
        return run


def bystanders(home: Path, count: int) -> list[Run]:
    """Further runs without a candidate, a minute older each."""
    settings = resolve_settings(home=home, device="simulator")
    with closing(Store(home / "store.db")) as store:
        first = record_run(Captured(scaled_relu_problem(), None), settings, store)
        found = [first]
        for number in range(1, count):
            at = datetime.now(UTC) - timedelta(minutes=number)
            run = first.model_copy(update={"id": f"{first.id}-{number:03d}", "created": at.isoformat()})
            store.put_run(run)
            found.append(run)
        return found


def _put(
    store: Store, run: Run, judged_under: str, number: int, generation: int, island: int, idea: str
) -> None:
    program = scaled_relu_program()
    program = program.model_copy(update={"source": f"{program.source}\n// {number}\n"})
    fails = number % FAIL_EVERY == FAIL_EVERY - 1
    store.put_program(program)
    store.put_candidate(
        Candidate(
            id=f"{run.id}-{generation:03d}-{number:05d}", run_id=run.id, program_hash=program.content_hash(),
            generation=generation, island=island, origin=Origin(kind="recipe", agent="rules"),
            idea=idea or f"idea {number}",
        )
    )  # fmt: skip
    timing, profile = (None, None) if fails else passed(100.0 - 90.0 * number / 100_000)
    why = Diagnostic(stage=Stage.CORRECTNESS, rule="wrong_values", message="output 0 is off")
    store.put_evaluation(
        Evaluation(
            program_hash=program.content_hash(), problem_hash=run.problem_hash, policy_hash=judged_under,
            device=run.device, status=Status.INCORRECT if fails else Status.PASSED,
            stage=Stage.CORRECTNESS if fails else Stage.TIMING, diagnostics=(why,) if fails else (),
            timing=timing, profile=profile,
        )
    )  # fmt: skip
