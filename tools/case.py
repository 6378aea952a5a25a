"""What every candidate is judged on, and what becomes known of one while it is judged. No device here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import torch

from memory.records import BaselineTime, Diagnostic, Problem, Stage, TrialError
from tools.binding import BoundPlan
from tools.device_trials import DeviceTrial, DeviceTrials
from tools.devices.port import Device, DrawingDevice, Fault
from tools.lint import lint_plan
from tools.lint_findings import LintFinding
from tools.policy import Policy
from tools.trial import Trial, TrialData

Load = Callable[[Trial], TrialData]
"""Reads a trial; a cache that gives the same arrays again lets a device keep its uploads."""
Lint = Callable[[BoundPlan], tuple[LintFinding, ...]]
"""What static analysis says of a plan; a cache knows what was found ahead."""


@dataclass(frozen=True)
class Case:
    """What every candidate of a run is judged on."""

    problem: Problem
    """At the user's own shapes: timed."""
    twin: Problem
    """The reduced twin that trials run at, or the problem itself."""
    trials: tuple[Trial, ...]
    baselines: tuple[BaselineTime, ...]
    policy: Policy
    drawn: tuple[DeviceTrial, ...] = ()
    """Trials at the problem's own shapes, drawn on the device; the race is run on the first of them."""
    trusted: bool = False
    """The device can draw trials: there the captured graph agrees with the user's module in float64."""

    @cached_property
    def problem_hash(self) -> str:
        """The problem's identity, worked out once for all candidates; it travels with the case."""
        return self.problem.content_hash()

    @cached_property
    def policy_hash(self) -> str:
        """The policy's."""
        return self.policy.content_hash()

    def drawer(self, device: DrawingDevice) -> DeviceTrials:
        """What draws and judges at the problem's own shapes: building a graph's callables takes longer than running
        a small one, so once for all candidates."""
        if device.place not in self._drawers:
            self._drawers[device.place] = DeviceTrials(self.problem.graph, device.place, device.upload)
        return self._drawers[device.place]

    @cached_property
    def _drawers(self) -> dict[torch.device, DeviceTrials]:
        return {}

    def __getstate__(self) -> dict[str, object]:
        """Callables of a device stay in their process."""
        return {name: value for name, value in vars(self).items() if name != "_drawers"}


@dataclass(frozen=True)
class Bench:
    """What a program is judged on, where, how trials are read and how text is judged."""

    case: Case
    device: Device
    load: Load = Trial.load
    lint: Lint = lint_plan


class Failure(Exception):
    """Ends an evaluation early; never leaves tools.evaluation."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.status.value)
        self.fault = fault


@dataclass
class Progress:
    """What is known so far about one program."""

    stage: Stage = Stage.SCHEMA
    seconds: dict[str, float] = field(default_factory=dict)
    errors: list[TrialError] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)

    @contextmanager
    def entering(self, stage: Stage) -> Iterator[None]:
        """Run one stage and note its wall time, whether or not it succeeds."""
        self.stage = stage
        started = time.perf_counter()
        try:
            yield
        finally:
            taken = time.perf_counter() - started
            self.seconds[stage.value] = self.seconds.get(stage.value, 0.0) + taken
