"""A run of the example module that nobody has searched yet, and candidates judged in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agents.schemas import Member
from graph.build import open_context, open_store
from graph.context import RunContext
from graph.session import start_run
from graph.settings import resolve_settings
from memory.records import Candidate, Origin, Program
from tests.problems import module_text
from tools.problem import parse_target
from tools.worker import EvaluationJob


@contextmanager
def opened_run(folder: Path, **given: object) -> Iterator[RunContext]:
    """Its module, home and exports lie in `folder`. given: further settings."""
    (folder / "scaled.py").write_text(module_text(64, 48))
    settings = resolve_settings(home=folder / "home", export_dir=folder / "out", workers=1, **given)
    with open_store(settings) as store:
        run = start_run(parse_target(str(folder / "scaled.py")), settings, store, lambda _: None)
        with open_context(run, store, settings, warm=False) as context:
            yield context


def judged(context: RunContext, program: Program, name: str) -> Member:
    """A candidate of the run with its verdict, as the search leaves it."""
    candidate = Candidate(
        id=context.candidate_id(name),
        run_id=context.run.id,
        program_hash=program.content_hash(),
        parents=(),
        generation=0,
        origin=Origin(kind="outside", agent="test"),
        idea="one thread an element",
    )
    context.add(candidate, program)
    evaluation = context.pool.evaluate(EvaluationJob(program, context.case))
    assert evaluation is not None
    return Member(candidate, program, context.store.put_evaluation(evaluation))
