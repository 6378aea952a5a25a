"""The verifier: schema, lint, compile, sanitize, correctness, timing. First failure ends it; a failure is data.

Here: the order of the stages and what each turns into. Not here: how a stage works (tools.program, tools.lint,
tools.devices, tools.verification, tools.racing) or in which process it runs (tools.worker). Nothing a program
computes can mark itself correct or report its own time.
"""

from __future__ import annotations

from collections.abc import Callable

from memory.records import (
    Diagnostic,
    Evaluation,
    Profile,
    Program,
    Stage,
    Status,
    Timing,
)
from tools.binding import BoundPlan
from tools.case import Bench, Case, Failure, Lint, Load, Progress
from tools.devices.port import Device, DeviceLost, Fault
from tools.lint import lint_plan
from tools.profiling import summarise
from tools.program import validate
from tools.racing import measure
from tools.roofline import floor_us
from tools.trial import Trial
from tools.verification import load_plan, run_trial, twin_plan, verify, verify_drawn

SUSPICIOUS_FRACTION = 0.8
"""A time under this share of the floor is a detected cheat. A floor is made of rates that code reaches, copies and
library products, and those are 80 to 90 % of the datasheets': reading alone ran at 4.6 TB/s on an H200, copying at
4.3."""


class EvaluationLost(Exception):
    """The candidate made the device unusable for this process. `evaluation` is its verdict."""

    def __init__(self, evaluation: Evaluation) -> None:
        super().__init__(evaluation.diagnostics[0].message)
        self.evaluation = evaluation


def evaluate(
    program: Program, case: Case, device: Device, load: Load = Trial.load, lint: Lint = lint_plan
) -> Evaluation:
    """The verdict on `program`. Raises only for our own or the machine's faults (ToolMissing and the like).

    Raises: EvaluationLost where the device cannot be used any more after it.
    """
    bench, progress = Bench(case, device, load, lint), Progress()
    try:
        plan = _admit(program, bench, progress)
        verify(program, plan, bench, progress)
        timed = _time(plan, bench, progress)
    except Failure as failure:
        return _evaluation(program, case, device, progress, failure.fault)
    except DeviceLost as lost:
        raise EvaluationLost(_evaluation(program, case, device, progress, lost.fault)) from lost
    return _evaluation(program, case, device, progress, None, timed)


def check_trials(
    program: Program, case: Case, device: Device, load: Load = Trial.load, lint: Lint = lint_plan
) -> Evaluation | None:
    """Correctness alone, over the case's trials (a winner's soak); None where every trial passes.

    Raises: EvaluationLost where the device cannot be used any more after it.
    """

    def trials(plan: BoundPlan, bench: Bench, progress: Progress) -> None:
        if case.trials:
            subject = load_plan(twin_plan(program, plan, case), case.twin.graph, bench, progress)
            with progress.entering(Stage.CORRECTNESS):
                # Read past `load`: a soak's trials are used once.
                for trial in case.trials:
                    run_trial(subject, trial, trial.load(), device, progress)
        verify_drawn(plan, bench, progress)

    return _partly(trials, program, Bench(case, device, load, lint))


def sanitize(
    program: Program, case: Case, device: Device, load: Load = Trial.load, lint: Lint = lint_plan
) -> Evaluation | None:
    """One sanitized run on the first trial, whatever its values; None where nothing was found.

    Raises: EvaluationLost where the device cannot be used any more after it.
    """

    def run(plan: BoundPlan, bench: Bench, progress: Progress) -> None:
        subject = load_plan(twin_plan(program, plan, case), case.twin.graph, bench, progress)
        data = load(case.trials[0])
        with progress.entering(Stage.SANITIZE):
            executed = subject.loaded.execute({**data.inputs, **data.state}, sanitize=True)
        if isinstance(executed, Fault):
            raise Failure(executed)

    return _partly(run, program, Bench(case, device, load, lint))


def _partly(
    stages: Callable[[BoundPlan, Bench, Progress], None], program: Program, bench: Bench
) -> Evaluation | None:
    """The verdict where an admitted program fails in these stages; None where it does not."""
    case, device, progress = bench.case, bench.device, Progress()
    try:
        stages(_admit(program, bench, progress), bench, progress)
    except Failure as failure:
        return _evaluation(program, case, device, progress, failure.fault)
    except DeviceLost as lost:
        raise EvaluationLost(_evaluation(program, case, device, progress, lost.fault)) from lost
    return None


def _admit(program: Program, bench: Bench, progress: Progress) -> BoundPlan:
    with progress.entering(Stage.SCHEMA):
        plan, complaints = validate(program, bench.case.problem, bench.device.gpu)
        if complaints or plan is None:
            raise Failure(Fault(Status.SCHEMA_ERROR, complaints))
    with progress.entering(Stage.LINT):
        diagnostics = [
            Diagnostic(
                stage=Stage.LINT,
                rule=finding.rule,
                message=f"{finding.message}; {finding.remedy}",
                line=finding.line,
                severe=finding.severity == "severe",
            )
            for finding in bench.lint(plan)
        ]
        if any(d.severe for d in diagnostics):
            raise Failure(Fault(Status.LINT_ERROR, tuple(diagnostics)))
        progress.warnings += diagnostics
    return plan


def _time(plan: BoundPlan, bench: Bench, progress: Progress) -> tuple[Timing, Profile]:
    case, device = bench.case, bench.device
    with progress.entering(Stage.TIMING):
        measured, baselines = measure(plan, bench, progress)
    floor = floor_us(case.problem.work, case.problem.dtype, device.gpu)
    if measured.median_us < floor * SUSPICIOUS_FRACTION:
        message = f"{measured.median_us:.2f} µs is below the floor of {floor:.2f} µs, which no honest program can be"
        complaint = Diagnostic(stage=Stage.TIMING, rule="below_floor", message=message)
        raise Failure(Fault(Status.SUSPICIOUS, (complaint,)))
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
    return timing, summarise(measured, floor, device.gpu)


def _evaluation(
    program: Program,
    case: Case,
    device: Device,
    progress: Progress,
    fault: Fault | None,
    timed: tuple[Timing, Profile] | None = None,
) -> Evaluation:
    found = (*(fault.diagnostics if fault else ()), *dict.fromkeys(progress.warnings))
    return Evaluation(
        program_hash=program.content_hash(),
        problem_hash=case.problem_hash,
        policy_hash=case.policy_hash,
        device=device.name,
        status=fault.status if fault else Status.PASSED,
        stage=progress.stage,
        diagnostics=found,
        errors=tuple(progress.errors),
        timing=timed[0] if timed else None,
        profile=timed[1] if timed else None,
        seconds=progress.seconds,
    )
