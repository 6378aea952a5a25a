"""The verifier: schema, lint, compile, sanitize, correctness, timing. First failure ends it; a failure is data.

Here: the order of the stages and what each turns into. Not here: how a stage works (tools.program, tools.lint,
tools.devices, tools.correctness) or in which process it runs (tools.worker). Nothing a program computes can mark
itself correct or report its own time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from memory.records import (
    BaselineTime,
    Diagnostic,
    Evaluation,
    Problem,
    Profile,
    Program,
    Stage,
    Status,
    Timing,
    TrialError,
)
from tools.binding import BindError, BoundPlan, bind
from tools.correctness import Subject, compare
from tools.devices.port import Device, Fault, Loaded
from tools.lint import lint
from tools.policy import Policy
from tools.profiling import summarise
from tools.program import validate
from tools.roofline import floor_us
from tools.trial import Trial

SUSPICIOUS_FRACTION = 0.95
"""A time under this share of the floor is a detected cheat; the rest is the floor's own uncertainty."""


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


class _Failure(Exception):
    """Ends an evaluation inside this module; never leaves it."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.status.value)
        self.fault = fault


@dataclass
class _Progress:
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


def evaluate(program: Program, case: Case, device: Device) -> Evaluation:
    """The verdict on `program`. Raises only for our own or the machine's faults (ToolMissing and the like)."""
    progress = _Progress()
    try:
        plan = _admit(program, case.problem, device, progress)
        _verify(program, plan, case, device, progress)
        timed = _time(plan, case, device, progress)
    except _Failure as failure:
        return _evaluation(program, case, device, progress, failure.fault)
    return _evaluation(program, case, device, progress, None, timed)


def check_trials(program: Program, case: Case, device: Device) -> Evaluation | None:
    """Correctness alone, over the case's trials (a winner's soak); None where every trial passes."""
    progress = _Progress()
    try:
        plan = _admit(program, case.problem, device, progress)
        subject = _load(_twin_plan(program, plan, case), case, device, progress)
        with progress.entering(Stage.CORRECTNESS):
            for trial in case.trials:
                _run_trial(subject, trial, progress, sanitize=False)
    except _Failure as failure:
        return _evaluation(program, case, device, progress, failure.fault)
    return None


@dataclass(frozen=True)
class _Subject:
    """A compiled program with the plan whose results are compared, and the case it is judged on."""

    loaded: Loaded
    plan: BoundPlan
    case: Case

    def pairs(self) -> list[tuple[str, str]]:
        """(name in the plan, name in the graph) of every output and updated buffer."""
        graph = self.case.twin.graph
        outputs = list(zip(self.plan.outputs, graph.outputs, strict=True))
        return outputs + [(mine, graph.updates[name]) for name, mine in self.plan.updates.items()]


def _admit(program: Program, problem: Problem, device: Device, progress: _Progress) -> BoundPlan:
    with progress.entering(Stage.SCHEMA):
        plan, complaints = validate(program, problem, device.gpu)
        if complaints or plan is None:
            raise _Failure(Fault(Status.SCHEMA_ERROR, complaints))
    with progress.entering(Stage.LINT):
        diagnostics = [
            Diagnostic(
                stage=Stage.LINT,
                rule=finding.rule,
                message=f"{finding.message}; {finding.remedy}",
                line=finding.line,
                severe=finding.severity == "severe",
            )
            for finding in lint(program.source, plan.entries)
        ]
        if any(d.severe for d in diagnostics):
            raise _Failure(Fault(Status.LINT_ERROR, tuple(diagnostics)))
        progress.warnings += diagnostics
    return plan


def _twin_plan(program: Program, plan: BoundPlan, case: Case) -> BoundPlan:
    if case.twin is case.problem:
        return plan
    try:
        return bind(program, case.twin)
    except BindError as error:
        message = f"at the reduced shapes that the simulator verifies: {error}"
        complaint = Diagnostic(stage=Stage.SCHEMA, rule="expression", message=message)
        raise _Failure(Fault(Status.SCHEMA_ERROR, (complaint,))) from error


def _load(plan: BoundPlan, case: Case, device: Device, progress: _Progress) -> _Subject:
    with progress.entering(Stage.COMPILE):
        loaded = device.load(plan)
        if isinstance(loaded, Fault):
            raise _Failure(loaded)
        return _Subject(loaded, plan, case)


def _verify(program: Program, plan: BoundPlan, case: Case, device: Device, progress: _Progress) -> None:
    """Sanitize on the first trial, which judges its values too; then every other trial."""
    subject = _load(_twin_plan(program, plan, case), case, device, progress)
    first, *others = case.trials
    with progress.entering(Stage.SANITIZE):
        _run_trial(subject, first, progress, sanitize=True)
    with progress.entering(Stage.CORRECTNESS):
        for trial in others:
            _run_trial(subject, trial, progress, sanitize=False)


def _run_trial(subject: _Subject, trial: Trial, progress: _Progress, *, sanitize: bool) -> None:
    data = trial.load()
    executed = subject.loaded.execute({**data.inputs, **data.state}, sanitize=sanitize)
    if isinstance(executed, Fault):
        raise _Failure(executed)
    progress.warnings += executed.warnings
    complaints: list[Diagnostic] = []
    for mine, wanted in subject.pairs():
        comparison = compare(
            executed.results[mine],
            Subject(
                output=wanted,
                distribution=str(trial.distribution),
                dtype=subject.plan.spec(mine).dtype,
                oracle=data.expected[wanted],
                eager=data.eager[wanted],
            ),
            subject.case.policy.tolerance,
        )
        progress.errors.append(comparison.record)
        if comparison.complaint is not None:
            complaints.append(comparison.complaint)
    if complaints:
        progress.stage = Stage.CORRECTNESS
        raise _Failure(Fault(Status.INCORRECT, tuple(complaints)))


def _time(plan: BoundPlan, case: Case, device: Device, progress: _Progress) -> tuple[Timing, Profile]:
    with progress.entering(Stage.TIMING):
        measured = device.measure(plan)
        if isinstance(measured, Fault):
            raise _Failure(measured)
    floor = floor_us(case.problem.work, case.problem.dtype, device.gpu)
    if measured.median_us < floor * SUSPICIOUS_FRACTION:
        message = f"{measured.median_us:.2f} µs is below the floor of {floor:.2f} µs, which no honest program can be"
        complaint = Diagnostic(stage=Stage.TIMING, rule="below_floor", message=message)
        raise _Failure(Fault(Status.SUSPICIOUS, (complaint,)))
    timing = Timing(
        source=device.time_source,
        device=device.name,
        median_us=measured.median_us,
        low_us=measured.low_us,
        high_us=measured.high_us,
        floor_us=floor,
        baselines=case.baselines,
        rounds=measured.rounds,
    )
    return timing, summarise(measured, floor)


def _evaluation(
    program: Program,
    case: Case,
    device: Device,
    progress: _Progress,
    fault: Fault | None,
    timed: tuple[Timing, Profile] | None = None,
) -> Evaluation:
    found = (*(fault.diagnostics if fault else ()), *dict.fromkeys(progress.warnings))
    return Evaluation(
        program_hash=program.content_hash(),
        problem_hash=case.problem.content_hash(),
        policy_hash=case.policy.content_hash(),
        device=device.name,
        status=fault.status if fault else Status.PASSED,
        stage=progress.stage,
        diagnostics=found,
        errors=tuple(progress.errors),
        timing=timed[0] if timed else None,
        profile=timed[1] if timed else None,
        seconds=progress.seconds,
    )
