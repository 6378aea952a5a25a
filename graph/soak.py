"""The winner's soak: fresh random trials until one fails or all have passed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from agents.schemas import Member
from graph.casework import Bench, draw_trials
from graph.context import RunContext
from memory.records import Evaluation
from tools.evaluation import Case
from tools.inputs import Distribution
from tools.reference import Reference
from tools.trial import Trial
from tools.worker import EvaluationJob

SOAK_BATCH = 10
"""Trials made, judged and deleted at a time."""
FULL_SHAPE_ELEMENTS = 1 << 25
"""A winner verified at reduced shapes is also run once at its own, up to this many elements over all tensors."""


@dataclass(frozen=True)
class SoakOutcome:
    """What became of a winner in its soak."""

    failure: Evaluation | None
    trials: int
    full_shape: bool
    """It passed at the problem's own shapes too."""


def soak(member: Member, context: RunContext, tell: Callable[[int], None]) -> SoakOutcome:
    """Run fresh random trials until one fails or all have passed. `tell` hears how many are done."""
    bench = context.bench
    folder = bench.directory / f"soak-{member.candidate.program_hash[:16]}"
    try:
        with bench.reference(bench.twin) as reference:
            done, failure = _soak_batches(member, reference, folder, context, tell)
        if failure is not None:
            return SoakOutcome(failure, done, full_shape=False)
        return _full_shape(member, bench, done, folder, context)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _soak_batches(
    member: Member, reference: Reference, folder: Path, context: RunContext, tell: Callable[[int], None]
) -> tuple[int, Evaluation | None]:
    """Trials passed, and the failure that ended the soak; the next batch is drawn while one is judged."""
    bench = context.bench
    starts = range(0, bench.policy.soak_trials, SOAK_BATCH)
    with ThreadPoolExecutor(max_workers=1) as drawer:
        pending = [drawer.submit(_draw_batch, reference, bench, start, folder) for start in starts[:1]]
        for start, following in zip_longest(starts, starts[1:]):
            trials = pending.pop().result()
            if following is not None:
                pending.append(drawer.submit(_draw_batch, reference, bench, following, folder))
            failure = _judge(member, context.case, trials, context)
            for trial in trials:
                shutil.rmtree(trial.directory)
            if failure is not None:
                return start, failure
            tell(start + len(trials))
    return bench.policy.soak_trials, None


def _draw_batch(reference: Reference, bench: Bench, start: int, folder: Path) -> tuple[Trial, ...]:
    count = min(SOAK_BATCH, bench.policy.soak_trials - start)
    return tuple(_soak_trial(reference, bench, start + i, folder) for i in range(count))


def _soak_trial(reference: Reference, bench: Bench, index: int, folder: Path) -> Trial:
    distribution = bench.policy.distributions[index % len(bench.policy.distributions)]
    return reference.trial(bench.seeds(index, "soak"), distribution, folder / f"{index:04d}")


def _full_shape(member: Member, bench: Bench, done: int, folder: Path, context: RunContext) -> SoakOutcome:
    """One trial at the problem's own shapes, where it was verified at reduced ones and memory allows."""
    if bench.twin is bench.problem:
        return SoakOutcome(None, done, full_shape=True)
    graph = bench.problem.graph
    if sum(graph.values[name].elements for name in graph.values) > FULL_SHAPE_ELEMENTS:
        return SoakOutcome(None, done, full_shape=False)
    trials = draw_trials(bench, bench.problem, (Distribution.NORMAL,), "full", [folder / "full"])
    case = Case(bench.problem, bench.problem, tuple(trials), context.case.baselines, bench.policy)
    failure = _judge(member, case, tuple(trials), context)
    return SoakOutcome(failure, done + 1 if failure is None else done, full_shape=failure is None)


def _judge(member: Member, case: Case, trials: tuple[Trial, ...], context: RunContext) -> Evaluation | None:
    return context.pool.evaluate(EvaluationJob(member.program, replace(case, trials=trials), kind="soak"))
