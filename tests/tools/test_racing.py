"""What the verifier makes of a race: eager's time from the same loop, and outputs judged after the clock stopped."""

# ruff: noqa: ARG002 - scripted classes keep the port's signatures

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

import numpy as np
import pytest

from memory.records import BaselineTime, Diagnostic, Evaluation, Stage, Status
from tests.cases import scaled_relu_case
from tests.problems import scaled_relu_problem, scaled_relu_program
from tools.arrays import Array
from tools.binding import BoundPlan
from tools.devices.port import (
    Baselines,
    CompileMode,
    Contest,
    Device,
    DeviceLost,
    Executed,
    Fault,
    Loaded,
    Measured,
    Raced,
)
from tools.evaluation import EvaluationLost, evaluate
from tools.gpus import GpuSpec
from tools.roofline import floor_us
from tools.timing import Interval


@dataclass
class ScriptedRacer:
    """The simulator, with races whose times are scripted."""

    inner: Device
    spoil: float = 0.0
    """Added to every result that the last timed calls left."""
    share_of_floor: float | None = None
    """The candidate's time; None for the modelled one."""
    contest: Contest | None = None

    @property
    def name(self) -> str:
        return "scripted"

    @property
    def gpu(self) -> GpuSpec:
        return self.inner.gpu

    @property
    def time_source(self) -> Literal["measured", "modelled"]:
        return "measured"

    def load(self, plan: BoundPlan) -> Loaded | Fault:
        return self.inner.load(plan)

    def measure(self, plan: BoundPlan) -> Measured | Fault:
        raise AssertionError("a racing device is asked to race")

    def race(self, plan: BoundPlan, contest: Contest) -> Raced | Fault:
        self.contest = contest
        loaded = self.inner.load(plan)
        assert not isinstance(loaded, Fault)
        results = tuple(self._result(loaded, cast("Mapping[str, Array]", given)) for given in contest.givens)
        measured = self.inner.measure(plan)
        assert isinstance(measured, Measured)
        if self.share_of_floor is not None:
            problem = scaled_relu_problem()
            us = self.share_of_floor * floor_us(problem.work, problem.dtype, self.gpu)
            measured = replace(measured, median_us=us, low_us=us, high_us=us)
        eager = BaselineTime(name="eager", median_us=50.0, low_us=49.0, high_us=51.0)
        return Raced(measured, eager, Interval(2.0, 1.9, 2.1), results)

    def baselines(self, contest: Contest, modes: tuple[CompileMode, ...]) -> Baselines:
        raise AssertionError("not asked for")

    def _result(self, loaded: Loaded, given: Mapping[str, Array]) -> dict[str, Array]:
        executed = loaded.execute(given, sanitize=False)
        assert isinstance(executed, Executed)
        return {n: (a.astype(np.float32) + np.float32(self.spoil)) for n, a in executed.results.items()}


@dataclass
class BrokenLoaded:
    """A program whose forward breaks the device."""

    def execute(self, given: Mapping[str, Array], *, sanitize: bool) -> Executed | Fault:
        complaint = Diagnostic(stage=Stage.SANITIZE, rule="device_error", message="illegal access")
        raise DeviceLost(Fault(Status.RUNTIME_ERROR, (complaint,)))


class BreakingDevice(ScriptedRacer):
    """A device that the first forward breaks."""

    def load(self, plan: BoundPlan) -> Loaded | Fault:
        return BrokenLoaded()


def verdict(device: Device, tmp_path: Path) -> Evaluation:
    return evaluate(scaled_relu_program(), scaled_relu_case(tmp_path), device)


def test_eagers_time_comes_from_the_same_race(simulated_h200: Device, tmp_path: Path) -> None:
    racer = ScriptedRacer(simulated_h200)
    evaluation = verdict(racer, tmp_path)
    assert evaluation.status is Status.PASSED, evaluation.diagnostics
    assert evaluation.timing is not None and evaluation.timing.eager_us == 50.0
    assert len(evaluation.timing.baselines) == 1
    assert racer.contest is not None and len(racer.contest.givens) == 3


def test_results_that_turn_wrong_while_timed_are_suspicious(simulated_h200: Device, tmp_path: Path) -> None:
    evaluation = verdict(ScriptedRacer(simulated_h200, spoil=1.0), tmp_path)
    assert evaluation.status is Status.SUSPICIOUS
    assert evaluation.timing is None and evaluation.stage is Stage.TIMING
    assert evaluation.diagnostics[0].rule == "wrong_when_timed"


def test_a_time_that_no_honest_program_can_reach_is_suspicious(
    simulated_h200: Device, tmp_path: Path
) -> None:
    evaluation = verdict(ScriptedRacer(simulated_h200, share_of_floor=0.7), tmp_path)
    assert (evaluation.status, evaluation.timing) == (Status.SUSPICIOUS, None)
    assert evaluation.diagnostics[0].rule == "below_floor"


def test_a_floor_made_of_a_copys_rate_may_be_passed_by_a_program_that_reads_alone(
    simulated_h200: Device, tmp_path: Path
) -> None:
    # A sum of 8.6 GB took 1,865 µs on an H200 and torch.compile's 1,905, under the floor of 1,998.
    evaluation = verdict(ScriptedRacer(simulated_h200, share_of_floor=0.93), tmp_path)
    assert evaluation.status is Status.PASSED
    assert evaluation.profile is not None and evaluation.profile.floor_fraction == 1.0


def test_a_program_that_breaks_the_device_has_a_verdict_all_the_same(
    simulated_h200: Device, tmp_path: Path
) -> None:
    with pytest.raises(EvaluationLost) as lost:
        verdict(BreakingDevice(simulated_h200), tmp_path)
    evaluation = lost.value.evaluation
    assert evaluation.status is Status.RUNTIME_ERROR and evaluation.stage is Stage.SANITIZE
    assert "sanitize" in evaluation.seconds
