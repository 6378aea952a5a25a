"""The timing stage: a plan's time and the baselines it is held against.

Here: which inputs a race runs on, and that what its timed calls left is right too. Not here: clocks (tools.timing,
tools.devices.cuda_race).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import torch

from memory.errors import BadInput
from memory.records import BaselineTime, Diagnostic, Stage, Status
from tools.binding import BoundPlan
from tools.case import Bench, Case, Failure, Load, Progress
from tools.devices.port import Contest, Device, DrawingDevice, Fault, Given, Measured, RacingDevice
from tools.verification import Results, judge, noted

RACE_TRIALS = 3
"""Trials whose inputs and weights a race rotates over."""


def measure(plan: BoundPlan, bench: Bench, progress: Progress) -> tuple[Measured, tuple[BaselineTime, ...]]:
    """The program's time and the baselines it is held against: eager's from the same loop where times are real.

    Raises: Failure; DeviceLost.
    """
    case, device = bench.case, bench.device
    if not isinstance(device, RacingDevice):
        alone = device.measure(plan)
        if isinstance(alone, Fault):
            raise Failure(alone)
        return alone, case.baselines
    givens = race_sets(case, device, bench.load)
    raced = device.race(plan, Contest(case.problem.graph, givens))
    if isinstance(raced, Fault):
        raise Failure(raced)
    for index, results in enumerate(raced.results):
        _refuse(_complaints(plan, bench, index, (givens[index], results), progress))
    others = tuple(b for b in case.baselines if b.name != "eager")
    return raced.measured, (raced.eager, *others)


def race_sets(case: Case, device: Device, load: Load) -> tuple[Given, ...]:
    """Inputs and weights at the problem's own shapes. Raises: BadInput where the case has none of them."""
    if case.drawn:
        if not isinstance(device, DrawingDevice):
            raise BadInput(f"{device.name} cannot draw trials itself")
        maker = case.drawer(device)
        return tuple(maker.draw(trial, load(trial.base)) for trial in case.drawn[:RACE_TRIALS])
    if case.twin is not case.problem:
        raise BadInput(
            f"{device.name} times real runs: draw its trials at the problem's own shapes, not a twin's"
        )
    data = [load(trial) for trial in case.trials[:RACE_TRIALS]]
    return tuple({**one.inputs, **one.state} for one in data)


def _complaints(
    plan: BoundPlan, bench: Bench, index: int, made: tuple[Given, Given], progress: Progress
) -> list[Diagnostic]:
    """What is wrong with what the timed calls left on one set; `made`: what was given, and the results."""
    case = bench.case
    subject = Results(plan, case.problem.graph, case.policy.tolerance)
    if not case.drawn:
        trial = case.trials[index]
        return noted(judge(subject, trial, bench.load(trial), made[1], bench.device), progress)
    given, results = (cast("Mapping[str, torch.Tensor]", side) for side in made)
    assert isinstance(bench.device, DrawingDevice), "it drew the set"
    maker = case.drawer(bench.device)
    found = maker.judge(maker.answers(given), subject.named(results), case.drawn[index].about, subject.rule)
    return noted(found, progress)


def _refuse(complaints: list[Diagnostic]) -> None:
    """A program may not be right first and wrong later. Raises: Failure."""
    if complaints:
        first = complaints[0].model_copy(
            update={
                "stage": Stage.TIMING,
                "rule": "wrong_when_timed",
                "message": f"right when verified, wrong in the timed calls: {complaints[0].message}",
            }
        )
        raise Failure(Fault(Status.SUSPICIOUS, (first, *complaints[1:])))
