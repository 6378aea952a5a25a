"""Correctness: a plan's results against the oracle, over the case's trials. A failure is raised as data (case.Failure).

Here: trials from the user's own module, as files, at the twin's shapes; then trials that the device draws itself, at
the problem's own. Not here: the comparison (tools.correctness, tools.tensor_compare), timing (tools.racing).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import torch

from memory.errors import BadInput
from memory.records import Diagnostic, DType, Graph, Program, Stage, Status
from tools.arrays import Array
from tools.binding import BindError, BoundPlan, bind
from tools.case import Bench, Case, Failure, Progress
from tools.correctness import Comparison, Subject, Tolerance, compare
from tools.devices.port import Device, DrawingDevice, Executed, Fault, Given, Loaded, Ran
from tools.tensor_compare import TensorSubject, compare_tensors
from tools.trial import Trial, TrialData

_T = TypeVar("_T")


@dataclass(frozen=True)
class Results:
    """A plan whose results are compared, with the graph that says which is which."""

    plan: BoundPlan
    graph: Graph
    rule: Tolerance

    def named(self, results: Mapping[str, _T]) -> dict[str, _T]:
        """A plan's results by graph name: every output and updated buffer."""
        pairs = list(zip(self.plan.outputs, self.graph.outputs, strict=True))
        pairs += [(mine, self.graph.updates[name]) for name, mine in self.plan.updates.items()]
        return {wanted: results[mine] for mine, wanted in pairs}


@dataclass(frozen=True)
class LoadedPlan(Results):
    """The same with the compiled program."""

    loaded: Loaded


def twin_plan(program: Program, plan: BoundPlan, case: Case) -> BoundPlan:
    """The program bound to the shapes that its trials have; `plan` has the problem's own. Raises: Failure."""
    if case.twin is case.problem:
        return plan
    try:
        return bind(program, case.twin)
    except BindError as error:
        message = f"at the reduced shapes that trials have: {error}"
        complaint = Diagnostic(stage=Stage.SCHEMA, rule="expression", message=message)
        raise Failure(Fault(Status.SCHEMA_ERROR, (complaint,))) from error


def load_plan(plan: BoundPlan, graph: Graph, bench: Bench, progress: Progress) -> LoadedPlan:
    """Compile and load. Raises: Failure; DeviceLost."""
    with progress.entering(Stage.COMPILE):
        loaded = bench.device.load(plan)
        if isinstance(loaded, Fault):
            raise Failure(loaded)
        return LoadedPlan(plan, graph, bench.case.policy.tolerance, loaded)


def verify(program: Program, plan: BoundPlan, bench: Bench, progress: Progress) -> None:
    """Sanitize on the first trial, which judges its values too; then every other trial."""
    case = bench.case
    subject = load_plan(twin_plan(program, plan, case), case.twin.graph, bench, progress)
    first, *others = case.trials
    with progress.entering(Stage.SANITIZE):
        run_trial(subject, first, bench.load(first), bench.device, progress, sanitize=True)
    with progress.entering(Stage.CORRECTNESS):
        for trial in others:
            run_trial(subject, trial, bench.load(trial), bench.device, progress)
    verify_drawn(plan, bench, progress)


def verify_drawn(plan: BoundPlan, bench: Bench, progress: Progress) -> None:
    """The trials that the device draws itself, at the problem's own shapes; the first one is sanitized."""
    case, device = bench.case, bench.device
    if not case.drawn:
        return
    if not isinstance(device, DrawingDevice):
        raise BadInput(f"{device.name} cannot draw trials itself")
    subject = load_plan(plan, case.problem.graph, bench, progress)
    maker = case.drawer(device)
    for index, trial in enumerate(case.drawn):
        sanitize = index == 0
        with progress.entering(Stage.SANITIZE if sanitize else Stage.CORRECTNESS):
            given = maker.draw(trial, bench.load(trial.base))
            # Half of them answered first, half afterwards: a program finds no answer that lies about in memory, and
            # can change none.
            answers = maker.answers(given) if index % 2 else None
            ran = device.run_tensors(subject.loaded, given, sanitize=sanitize)
            if isinstance(ran, Fault):
                raise Failure(ran)
            progress.warnings += ran.warnings
            comparisons = maker.judge(
                answers or maker.answers(given), subject.named(ran.results), trial.about, subject.rule
            )
            complaints = noted(comparisons, progress)
        if complaints:
            progress.stage = Stage.CORRECTNESS
            raise Failure(Fault(Status.INCORRECT, tuple(complaints)))


def noted(comparisons: Sequence[Comparison], progress: Progress) -> list[Diagnostic]:
    """Keep the errors; returns the complaints."""
    progress.errors += [comparison.record for comparison in comparisons]
    return [c.complaint for c in comparisons if c.complaint is not None]


def run_trial(
    subject: LoadedPlan,
    trial: Trial,
    data: TrialData,
    device: Device,
    progress: Progress,
    *,
    sanitize: bool = False,
) -> None:
    """One trial of the user's module. Raises: Failure; DeviceLost."""
    given = {**data.inputs, **data.state}
    ran: Executed | Ran | Fault
    if isinstance(device, DrawingDevice):
        ran = device.run_tensors(subject.loaded, given, sanitize=sanitize)
    else:
        ran = subject.loaded.execute(given, sanitize=sanitize)
    if isinstance(ran, Fault):
        raise Failure(ran)
    progress.warnings += ran.warnings
    complaints = noted(judge(subject, trial, data, ran.results, device), progress)
    if complaints:
        progress.stage = Stage.CORRECTNESS
        raise Failure(Fault(Status.INCORRECT, tuple(complaints)))


def judge(
    subject: Results, trial: Trial, data: TrialData, results: Given, device: Device
) -> list[Comparison]:
    """Compare every output with the oracle, where the results lie."""
    about = trial.distribution.value
    compared: list[Comparison] = []
    for name, mine in subject.named(cast("Mapping[str, Array | torch.Tensor]", results)).items():
        dtype = subject.graph.values[name].dtype
        expected, eager = data.expected[name], data.eager[name]
        if isinstance(mine, torch.Tensor):
            assert isinstance(device, DrawingDevice), "only those leave tensors"
            oracle = device.upload(expected, DType.F64 if dtype.is_floating else dtype)
            answers = TensorSubject(name, about, oracle, device.upload(eager, dtype), dtype)
            compared.append(compare_tensors(mine, answers, subject.rule))
        else:
            compared.append(compare(mine, Subject(name, about, dtype, expected, eager), subject.rule))
    return compared
