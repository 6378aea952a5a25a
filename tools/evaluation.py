"""The verifier: schema, lint, compile, sanitize, correctness, timing. First failure ends it; a failure is data.

Here: the order of the stages and what each turns into. Not here: how a stage works (tools.program, tools.lint,
tools.devices, tools.correctness) or in which process it runs (tools.worker). Nothing a program computes can mark
itself correct or report its own time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from memory.errors import BadInput
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
from tools.devices.port import Contest, Device, DeviceLost, Fault, Loaded, Measured, Raced, RacingDevice
from tools.lint import lint
from tools.policy import Policy
from tools.profiling import summarise
from tools.program import validate
from tools.roofline import floor_us
from tools.trial import Array, Trial, TrialData

RACE_TRIALS = 3
"""Trials whose inputs and weights a race rotates over."""
SUSPICIOUS_FRACTION = 0.95
"""A time under this share of the floor is a detected cheat; the rest is the floor's own uncertainty."""


Load = Callable[[Trial], TrialData]
"""Reads a trial; a cache that gives the same arrays again lets a device keep its uploads."""


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


class EvaluationLost(Exception):
    """The candidate made the device unusable for this process. `evaluation` is its verdict."""

    def __init__(self, evaluation: Evaluation) -> None:
        super().__init__(evaluation.diagnostics[0].message)
        self.evaluation = evaluation


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


def evaluate(program: Program, case: Case, device: Device, load: Load = Trial.load) -> Evaluation:
    """The verdict on `program`. Raises only for our own or the machine's faults (ToolMissing and the like).

    Raises: EvaluationLost where the device cannot be used any more after it.
    """
    progress = _Progress()
    try:
        plan = _admit(program, case.problem, device, progress)
        _verify(program, plan, _Bench(case, device, load), progress)
        timed = _time(plan, _Bench(case, device, load), progress)
    except _Failure as failure:
        return _evaluation(program, case, device, progress, failure.fault)
    except DeviceLost as lost:
        raise EvaluationLost(_evaluation(program, case, device, progress, lost.fault)) from lost
    return _evaluation(program, case, device, progress, None, timed)


def check_trials(program: Program, case: Case, device: Device) -> Evaluation | None:
    """Correctness alone, over the case's trials (a winner's soak); None where every trial passes.

    Raises: EvaluationLost where the device cannot be used any more after it.
    """
    progress = _Progress()
    try:
        plan = _admit(program, case.problem, device, progress)
        subject = _load(_twin_plan(program, plan, case), case, device, progress)
        with progress.entering(Stage.CORRECTNESS):
            for trial in case.trials:
                _run_trial(subject, trial, trial.load(), progress)
    except _Failure as failure:
        return _evaluation(program, case, device, progress, failure.fault)
    except DeviceLost as lost:
        raise EvaluationLost(_evaluation(program, case, device, progress, lost.fault)) from lost
    return None


@dataclass(frozen=True)
class _Bench:
    """What a program is judged on, where, and how trials are read."""

    case: Case
    device: Device
    load: Load


@dataclass(frozen=True)
class _Results:
    """A plan whose results are compared, and the case they are judged on."""

    plan: BoundPlan
    case: Case

    def pairs(self) -> list[tuple[str, str]]:
        """(name in the plan, name in the graph) of every output and updated buffer."""
        graph = self.case.twin.graph
        outputs = list(zip(self.plan.outputs, graph.outputs, strict=True))
        return outputs + [(mine, graph.updates[name]) for name, mine in self.plan.updates.items()]


@dataclass(frozen=True)
class _Subject(_Results):
    """The same with the compiled program."""

    loaded: Loaded


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
            for finding in lint(program.source, plan.entries, tuple(sorted(plan.defines.items())))
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
        return _Subject(plan, case, loaded)


def _verify(program: Program, plan: BoundPlan, bench: _Bench, progress: _Progress) -> None:
    """Sanitize on the first trial, which judges its values too; then every other trial."""
    case = bench.case
    subject = _load(_twin_plan(program, plan, case), case, bench.device, progress)
    first, *others = case.trials
    with progress.entering(Stage.SANITIZE):
        _run_trial(subject, first, bench.load(first), progress, sanitize=True)
    with progress.entering(Stage.CORRECTNESS):
        for trial in others:
            _run_trial(subject, trial, bench.load(trial), progress)


def _run_trial(
    subject: _Subject, trial: Trial, data: TrialData, progress: _Progress, *, sanitize: bool = False
) -> None:
    executed = subject.loaded.execute({**data.inputs, **data.state}, sanitize=sanitize)
    if isinstance(executed, Fault):
        raise _Failure(executed)
    progress.warnings += executed.warnings
    complaints = _judge(subject, trial, data, executed.results, progress)
    if complaints:
        progress.stage = Stage.CORRECTNESS
        raise _Failure(Fault(Status.INCORRECT, tuple(complaints)))


def _judge(
    subject: _Results, trial: Trial, data: TrialData, results: Mapping[str, Array], progress: _Progress
) -> list[Diagnostic]:
    """Compare every output with the oracle; notes the errors and returns the complaints."""
    complaints: list[Diagnostic] = []
    for mine, wanted in subject.pairs():
        comparison = compare(
            results[mine],
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
    return complaints


def _time(plan: BoundPlan, bench: _Bench, progress: _Progress) -> tuple[Timing, Profile]:
    case, device = bench.case, bench.device
    with progress.entering(Stage.TIMING):
        measured, baselines = _measure(plan, bench, progress)
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
        baselines=baselines,
        rounds=measured.rounds,
    )
    return timing, summarise(measured, floor)


def _measure(
    plan: BoundPlan, bench: _Bench, progress: _Progress
) -> tuple[Measured, tuple[BaselineTime, ...]]:
    """The program's time and the baselines it is held against: eager's from the same loop where times are real."""
    case, device = bench.case, bench.device
    if not isinstance(device, RacingDevice):
        alone = device.measure(plan)
        if isinstance(alone, Fault):
            raise _Failure(alone)
        return alone, case.baselines
    if case.twin is not case.problem:
        raise BadInput(
            f"{device.name} times real runs: draw its trials at the problem's own shapes, not a twin's"
        )
    loaded = [(trial, bench.load(trial)) for trial in case.trials[:RACE_TRIALS]]
    givens = tuple({**data.inputs, **data.state} for _, data in loaded)
    raced = device.race(plan, Contest(case.problem.graph, givens))
    if isinstance(raced, Fault):
        raise _Failure(raced)
    _judge_again(plan, loaded, raced, case, progress)
    others = tuple(b for b in case.baselines if b.name != "eager")
    return raced.measured, (raced.eager, *others)


def _judge_again(
    plan: BoundPlan, loaded: list[tuple[Trial, TrialData]], raced: Raced, case: Case, progress: _Progress
) -> None:
    """What the timed calls left must be right too: a program may not be right first and wrong later."""
    subject = _Results(plan, case)
    for (trial, data), results in zip(loaded, raced.results, strict=False):
        complaints = _judge(subject, trial, data, results, progress)
        if complaints:
            first = complaints[0].model_copy(
                update={
                    "stage": Stage.TIMING,
                    "rule": "wrong_when_timed",
                    "message": f"right when verified, wrong in the timed calls: {complaints[0].message}",
                }
            )
            raise _Failure(Fault(Status.SUSPICIOUS, (first, *complaints[1:])))


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
