"""A closer look at a GPU run's winner, by tools that see more than a run does.

A GPU runs a kernel that reads behind its tensors, or races without showing it, as if nothing were wrong. The simulator
sees every access, at the shapes of the module's own trials; compute-sanitizer sees the real run's. Only findings about
accesses refute a winner here. Nsight Compute's counters go into its profile. What a tool cannot do is said, and costs
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from agents.schemas import Member
from graph.context import RunContext
from memory.errors import BadInput, ToolMissing
from memory.records import Diagnostic, Status
from tools.compute_sanitizer import sanitize_finalist
from tools.devices.build import DeviceSpec
from tools.gpus import gpu_for_arch
from tools.nsight import profile_finalist
from tools.nsight_records import CountersAbsent
from tools.pool import LocalPool
from tools.profiling import kernel_lines, refine
from tools.worker import EvaluationJob, WorkerSpec


@dataclass(frozen=True)
class Examination:
    """What one tool found."""

    remark: str
    """One sentence for the log: what was examined, or why it was not."""
    fault: Diagnostic | None = None
    """What refutes the winner."""


def examine(member: Member, context: RunContext, tell: Callable[[str], None]) -> Diagnostic | None:
    """Look closer, as the setting `examine` says; the fault that refutes the winner, or None. `tell` hears each step.

    Every remark is logged with the candidate. Raises: ToolMissing never; what is absent is a remark.
    """
    looks: list[tuple[str, Callable[[Member, RunContext], Examination]]] = []
    if context.settings.examine != "none":
        looks.append(("examining the winner on the simulator", _simulated))
    if context.settings.examine == "all":
        looks.append(("examining the winner with compute-sanitizer", _sanitized))
        looks.append(("counting the winner's memory traffic with Nsight Compute", _counted))
    for doing, look in looks:
        tell(doing)
        found = look(member, context)
        _log(found.remark, member, context)
        if found.fault is not None:
            return found.fault
    return None


def _log(remark: str, member: Member, context: RunContext) -> None:
    context.record("profiler", remark, member.candidate.generation, candidate_id=member.candidate.id)


def _simulated(member: Member, context: RunContext) -> Examination:
    """One run under the simulator's sanitizer."""
    try:
        gpu = gpu_for_arch(context.gpu.arch)
    except BadInput:
        return Examination(f"not examined on the simulator, which does not know {context.gpu.arch}")
    settings = context.settings
    spec = DeviceSpec("simulator", gpu.name, timeout_s=settings.deadline_s / 2)
    job = EvaluationJob(member.program, replace(context.case, drawn=()), kind="sanitize")
    try:
        with LocalPool(WorkerSpec(spec, settings.root / "cache"), 1) as pool:
            found = pool.evaluate(job)
    except ToolMissing as error:
        return Examination(f"not examined on the simulator: {error}")
    if found is None:
        return Examination("on the simulator no access was out of bounds and none raced")
    first = found.diagnostics[0]
    if found.status is Status.SANITIZER_ERROR:
        return Examination(f"refuted on the simulator: {first.message}", first)
    return Examination(f"not examined on the simulator, which cannot run it: {first.message}")


def _sanitized(member: Member, context: RunContext) -> Examination:
    """memcheck, racecheck and initcheck, at the shapes of the module's trials."""
    case = context.case
    found = sanitize_finalist(member.program, case.twin, case.trials[0].directory, _worker(context))
    if found.faults:
        first = found.faults[0]
        return Examination(f"refuted by compute-sanitizer: {first.message}", first)
    if found.unchecked:
        missing = "; ".join(f"{one.tool}: {one.message}" for one in found.unchecked)
        return Examination(f"compute-sanitizer could not look at everything: {missing}")
    return Examination("compute-sanitizer found nothing (memcheck, racecheck, initcheck)")


def _counted(member: Member, context: RunContext) -> Examination:
    """Hardware counters, into the stored profile."""
    evaluation = member.evaluation
    if evaluation.profile is None or evaluation.timing is None:
        return Examination("not profiled: it has no time")
    case = context.case
    counted = profile_finalist(member.program, case.problem, case.trials[0].directory, _worker(context))
    profile = refine(evaluation.profile, evaluation.timing, context.gpu, counted)
    context.store.refine_profile(evaluation, profile)
    context.members.forget(member.candidate.id)
    if isinstance(counted, CountersAbsent):
        return Examination(f"no hardware counters: {counted.message}")
    lines = "; ".join(kernel_lines(profile)) or "no kernel of its own"
    return Examination(f"{profile.explanation}; {lines}")


def _worker(context: RunContext) -> WorkerSpec:
    return WorkerSpec(context.settings.device_spec, context.settings.root / "cache")
