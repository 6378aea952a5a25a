"""The winner's soak: fresh random trials until one fails or all have passed.

Where the device can draw trials itself (a GPU), the user's module makes the first MODULE_TRIALS, and the rest are drawn
at the problem's own shapes, with weights moved in each. Elsewhere the module makes all of them, at reduced shapes where
the problem is large, and one at the problem's own shapes at the end. The setting `soak_s` ends a soak early: what
passed until then is its outcome, and said.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from agents.schemas import Member
from graph.budget import Deadline
from graph.casework import Bench, draw_trials
from graph.context import RunContext
from memory.records import Evaluation
from tools.case import Case
from tools.device_trials import DeviceTrial
from tools.footprint import traffic_bytes
from tools.inputs import Distribution
from tools.reference import Reference
from tools.trial import Trial
from tools.worker import EvaluationJob

SOAK_BATCH = 10
"""Trials made, judged and deleted at a time."""
MODULE_TRIALS = 20
"""Trials that the user's module makes where the device draws the others."""
MODULE_BYTES = 1 << 31
"""Inputs, state and outputs that those may come to together; one is made in any case."""
DRAWN_BATCH = 50
"""Drawn trials judged at a time, at most."""
BATCH_BYTES = 1 << 37
"""Inputs, state and outputs of one batch, at most: the clock is read between batches only."""
FULL_SHAPE_ELEMENTS = 1 << 25
"""A winner verified at reduced shapes is also run once at its own, up to this many elements over all tensors."""

Tell = Callable[[int], None]


@dataclass(frozen=True)
class SoakOutcome:
    """What became of a winner in its soak."""

    failure: Evaluation | None
    trials: int
    """Passed, of either kind."""
    full_shape_trials: int
    """Those among them at the problem's own shapes."""

    def plus(self, passed: int, failure: Evaluation | None = None) -> SoakOutcome:
        """With more trials passed at the problem's own shapes, and what ended it."""
        return SoakOutcome(failure, self.trials + passed, self.full_shape_trials + passed)


def soak(member: Member, context: RunContext, tell: Tell) -> SoakOutcome:
    """Run fresh random trials until one fails or all have passed. `tell` hears how many are done.

    Raises: BadInput where the user's module cannot be run any more.
    """
    bench, wanted = context.bench, context.bench.policy.soak_trials
    made = min(wanted, module_trials(traffic_bytes(bench.twin))) if context.case.trusted else wanted
    folder = bench.directory / f"soak-{member.candidate.program_hash[:16]}"
    deadline = Deadline()
    deadline.set(context.settings.soak_s)
    try:
        with bench.reference(bench.twin) as reference:
            done, failure = _module_trials(_Soak(member, context, reference, folder, deadline), made, tell)
        own_shapes = done if bench.twin is bench.problem else 0
        if failure is not None:
            return SoakOutcome(failure, done, own_shapes)
        if context.case.trusted:
            return _drawn_trials(member, context, SoakOutcome(None, done, own_shapes), deadline, tell)
        return _full_shape(member, bench, done, folder, context)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def module_trials(trial_bytes: int) -> int:
    """How many trials the module makes where the device draws the others."""
    return max(1, min(MODULE_TRIALS, MODULE_BYTES // max(trial_bytes, 1)))


@dataclass(frozen=True)
class _Soak:
    """A winner, and the module that makes its trials."""

    member: Member
    context: RunContext
    reference: Reference
    folder: Path
    deadline: Deadline

    def draw(self, start: int, end: int) -> tuple[Trial, ...]:
        return tuple(self._trial(index) for index in range(start, end))

    def _trial(self, index: int) -> Trial:
        bench = self.context.bench
        distribution = bench.policy.distributions[index % len(bench.policy.distributions)]
        return self.reference.trial(bench.seeds(index, "soak"), distribution, self.folder / f"{index:04d}")


def _module_trials(soak: _Soak, count: int, tell: Tell) -> tuple[int, Evaluation | None]:
    """Trials passed, and the failure that ended the soak; the next batch is drawn while one is judged."""
    starts = range(0, count, SOAK_BATCH)
    with ThreadPoolExecutor(max_workers=1) as drawer:
        pending = [drawer.submit(soak.draw, start, min(start + SOAK_BATCH, count)) for start in starts[:1]]
        for start, following in zip_longest(starts, starts[1:]):
            trials = pending.pop().result()
            if following is not None and not soak.deadline.passed:
                pending.append(drawer.submit(soak.draw, following, min(following + SOAK_BATCH, count)))
            failure = _judge(soak.member, replace(soak.context.case, trials=trials, drawn=()), soak.context)
            for trial in trials:
                shutil.rmtree(trial.directory)
            if failure is not None:
                return start, failure
            tell(start + len(trials))
            if not pending:
                return start + len(trials), None
    return count, None


def _drawn_trials(
    member: Member, context: RunContext, so_far: SoakOutcome, deadline: Deadline, tell: Tell
) -> SoakOutcome:
    """The rest of the soak, drawn on the device: one batch in any case."""
    bench, case = context.bench, context.case
    count = bench.policy.soak_trials - so_far.trials
    size = max(1, min(DRAWN_BATCH, BATCH_BYTES // max(traffic_bytes(bench.problem), 1)))
    passed = 0
    while passed < count and not (passed and deadline.passed):
        batch = tuple(_drawn(bench, case, index) for index in range(passed, min(passed + size, count)))
        failure = _judge(member, replace(case, trials=(), drawn=batch), context)
        if failure is not None:
            return so_far.plus(passed, failure)
        passed += len(batch)
        tell(so_far.trials + passed)
    return so_far.plus(passed)


def _drawn(bench: Bench, case: Case, index: int) -> DeviceTrial:
    distribution = bench.policy.distributions[index % len(bench.policy.distributions)]
    base = case.trials[index % len(case.trials)]
    if distribution is Distribution.AUTHOR:
        base = next((t for t in case.trials if t.distribution is Distribution.AUTHOR), base)
    return DeviceTrial(bench.seeds(index, "drawn soak"), distribution, base, move_weights=True)


def _full_shape(member: Member, bench: Bench, done: int, folder: Path, context: RunContext) -> SoakOutcome:
    """One trial at the problem's own shapes, where it was verified at reduced ones and memory allows."""
    if bench.twin is bench.problem:
        return SoakOutcome(None, done, done)
    graph = bench.problem.graph
    if sum(graph.values[name].elements for name in graph.values) > FULL_SHAPE_ELEMENTS:
        return SoakOutcome(None, done, 0)
    trials = draw_trials(bench, bench.problem, (Distribution.NORMAL,), "full", [folder / "full"])
    case = Case(bench.problem, bench.problem, tuple(trials), context.case.baselines, bench.policy)
    failure = _judge(member, case, context)
    return SoakOutcome(failure, done + 1, 1) if failure is None else SoakOutcome(failure, done, 0)


def _judge(member: Member, case: Case, context: RunContext) -> Evaluation | None:
    return context.pool.evaluate(EvaluationJob(member.program, case, kind="soak"))
