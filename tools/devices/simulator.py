"""The simulator adapter: kernels run on the CPU, every access observed; times are modelled.

Kernels run in the simulator's own sandboxed process; library steps run here, through torch, on the same memory.
Covers: crashes, hangs, out-of-bounds accesses, races, writes to inputs and unwritten outputs of the kernels.
Does not cover: what only real hardware shows (docs/simulator.md lists it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from memory.records import Diagnostic, Stage, Status
from tools.arrays import Array
from tools.binding import BoundKernel, BoundLibrary, BoundPlan, BoundStep
from tools.devices.library import LibraryFault
from tools.devices.modelling import launch_of, model_plan
from tools.devices.port import Executed, Fault, Measured
from tools.devices.simulated_memory import SimulatedMemory, invalid_booleans
from tools.gpus import GpuSpec
from tools.nvrtc import Compiled, CompileRejected, CompileRequest, NvrtcCompiler
from tools.occupancy import theoretical_occupancy
from tools.simulator.compiler import HostCompileError, HostCompiler, HostLibrary
from tools.simulator.report import Finding, KernelMetrics, RunStatus, Severity, SimReport
from tools.simulator.runner import Mode, Simulator

_FAULT_STATUS = {
    RunStatus.FINDINGS: Status.SANITIZER_ERROR,
    RunStatus.CRASHED: Status.RUNTIME_ERROR,
    RunStatus.BAD_LAUNCH: Status.RUNTIME_ERROR,
    RunStatus.TIMED_OUT: Status.TIMED_OUT,
    RunStatus.OUT_OF_MEMORY: Status.OUT_OF_MEMORY,
}


@dataclass(frozen=True)
class SimulatorDevice:
    """A simulated GPU: the Device port on a machine without one."""

    gpu: GpuSpec
    nvrtc: NvrtcCompiler
    host: HostCompiler
    simulator: Simulator

    @property
    def name(self) -> str:
        """`simulator:` and the GPU it stands for."""
        return f"simulator:{self.gpu.name}"

    @property
    def time_source(self) -> Literal["measured", "modelled"]:
        """Always modelled."""
        return "modelled"

    def load(self, plan: BoundPlan) -> SimulatedProgram | Fault:
        """Compile with NVRTC, which is what ships, then for the host. Raises ToolMissing without NVRTC or g++."""
        compiled = self.compile_for_gpu(plan)
        if isinstance(compiled, Fault):
            return compiled
        return SimulatedProgram(self, plan)

    def measure(self, plan: BoundPlan) -> Measured | Fault:
        """Modelled time at the plan's own shapes from a few sampled blocks of every kernel."""
        compiled = self.compile_for_gpu(plan)
        if isinstance(compiled, Fault):
            return compiled
        metrics = self._sample(plan)
        if isinstance(metrics, Fault):
            return metrics
        return model_plan(plan, metrics, compiled.resources if compiled else {}, self.gpu)

    def compile_for_gpu(self, plan: BoundPlan) -> Compiled | Fault | None:
        """The plan's kernels as a cubin; None where it has no kernels."""
        if not plan.entries:
            return None
        request = CompileRequest(
            plan.source, self.gpu.arch, tuple(sorted(plan.defines.items())), plan.entries
        )
        compiled = self.nvrtc.compile(request)
        if isinstance(compiled, CompileRejected):
            return _rejected(compiled)
        return _resource_fault(plan, compiled, self.gpu) or compiled

    def compile_for_host(self, plan: BoundPlan, *, instrumented: bool) -> HostLibrary | Fault:
        """The plan's kernels as a host library."""
        try:
            return self.host.compile(plan.source, plan.defines, plan.entries, instrumented=instrumented)
        except HostCompileError as error:
            found = tuple(
                Diagnostic(
                    stage=Stage.COMPILE,
                    rule="simulator_compile",
                    message=f"compiles for the GPU but not in the simulator: {d.message}",
                    line=d.line,
                    excerpt=d.excerpt,
                )
                for d in error.diagnostics
            )
            return Fault(Status.COMPILE_ERROR, found)

    def _sample(self, plan: BoundPlan) -> Mapping[BoundKernel, KernelMetrics] | Fault:
        kernels = list(dict.fromkeys(s for s in plan.steps if isinstance(s, BoundKernel)))
        if not kernels:
            return {}
        library = self.compile_for_host(plan, instrumented=True)
        if isinstance(library, Fault):
            return library
        with SimulatedMemory(plan) as memory:
            launches = [launch_of(kernel) for kernel in kernels]
            report = self.simulator.run(library, launches, memory.arena, mode=Mode.SAMPLE)
        if report.status is not RunStatus.OK:
            return _run_fault(report, Stage.TIMING)
        return dict(zip(kernels, report.metrics, strict=True))


class SimulatedProgram:
    """A plan compiled for the simulator."""

    def __init__(self, device: SimulatorDevice, plan: BoundPlan) -> None:
        self._device = device
        self._plan = plan

    def execute(self, given: Mapping[str, Array], *, sanitize: bool) -> Executed | Fault:
        """One forward: buffers poisoned before, inputs and state checked unmodified after."""
        library: HostLibrary | None = None
        if self._plan.entries:
            compiled = self._device.compile_for_host(self._plan, instrumented=sanitize)
            if isinstance(compiled, Fault):
                return compiled
            library = compiled
        warnings: list[Diagnostic] = []
        with SimulatedMemory(self._plan) as memory:
            memory.fill(given)
            for is_kernel, steps in groupby(self._all_steps(), lambda s: isinstance(s, BoundKernel)):
                outcome = self._run_group(list(steps), memory, library if is_kernel else None, sanitize)
                if isinstance(outcome, Fault):
                    return outcome
                warnings += outcome
            changed = memory.changed(given)
            if changed:
                return _modified(changed)
            results = memory.results()
        garbled = invalid_booleans(results, {name: self._plan.spec(name) for name in results})
        return _garbled(garbled) if garbled else Executed(results, tuple(warnings))

    def _all_steps(self) -> tuple[BoundStep, ...]:
        return (*self._plan.prepare, *self._plan.steps)

    def _run_group(
        self, steps: list[BoundStep], memory: SimulatedMemory, library: HostLibrary | None, sanitize: bool
    ) -> tuple[Diagnostic, ...] | Fault:
        """Consecutive kernels go to the simulator in one run; library calls are made here."""
        if library is None:
            return _run_library([s for s in steps if isinstance(s, BoundLibrary)], memory)
        launches = [launch_of(step) for step in steps if isinstance(step, BoundKernel)]
        mode = Mode.CHECK if sanitize else Mode.PLAIN
        report = self._device.simulator.run(library, launches, memory.arena, mode=mode)
        if report.status is not RunStatus.OK:
            return _run_fault(report, Stage.SANITIZE if sanitize else Stage.CORRECTNESS)
        return _diagnostics(report, Stage.SANITIZE)


def _run_library(steps: list[BoundLibrary], memory: SimulatedMemory) -> tuple[Diagnostic, ...] | Fault:
    for step in steps:
        try:
            memory.run_library(step)
        except LibraryFault as fault:
            complaint = Diagnostic(stage=Stage.CORRECTNESS, rule="library_call", message=str(fault))
            return Fault(Status.RUNTIME_ERROR, (complaint,))
    return ()


def _rejected(compiled: CompileRejected) -> Fault:
    found = tuple(
        Diagnostic(stage=Stage.COMPILE, rule="nvrtc", message=d.message, line=d.line, excerpt=d.excerpt)
        for d in compiled.diagnostics
        if d.severity == "error"
    )
    status = Status.TIMED_OUT if compiled.reason == "timeout" else Status.COMPILE_ERROR
    fallback = Diagnostic(stage=Stage.COMPILE, rule="nvrtc", message=compiled.log[:2000] or compiled.reason)
    return Fault(status, found or (fallback,))


def _resource_fault(plan: BoundPlan, compiled: Compiled, gpu: GpuSpec) -> Fault | None:
    """A block that does not fit an SM fails at launch on a GPU, so it fails here."""
    for step in (*plan.prepare, *plan.steps):
        if not isinstance(step, BoundKernel) or step.entry not in compiled.resources:
            continue
        needs = compiled.resources[step.entry]
        shared = needs.static_shared_bytes + step.shared_bytes
        threads = step.block[0] * step.block[1] * step.block[2]
        if shared > gpu.smem_per_block_bytes:
            return _too_much(
                "shared_memory",
                f"{step.entry} needs {shared:,} bytes of shared memory a block (static and dynamic) and "
                f"{gpu.name} has {gpu.smem_per_block_bytes:,}",
            )
        if theoretical_occupancy(needs, threads, step.shared_bytes, gpu).blocks_per_sm == 0:
            return _too_much(
                "block_range",
                f"a block of {step.entry} does not fit {gpu.name}: {threads} threads of {needs.registers} registers "
                f"and {shared:,} bytes of shared memory",
            )
    return None


def _too_much(rule: str, message: str) -> Fault:
    return Fault(Status.COMPILE_ERROR, (Diagnostic(stage=Stage.COMPILE, rule=rule, message=message),))


def _modified(names: list[str]) -> Fault:
    message = f"the program changed {', '.join(names)}, which it may only read"
    complaint = Diagnostic(stage=Stage.CORRECTNESS, rule="input_modified", message=message)
    return Fault(Status.INCORRECT, (complaint,))


def _garbled(names: list[str]) -> Fault:
    message = f"boolean {', '.join(names)} holds bytes other than 0 and 1: not written, or not as booleans"
    complaint = Diagnostic(stage=Stage.CORRECTNESS, rule="wrong_values", message=message)
    return Fault(Status.INCORRECT, (complaint,))


def _run_fault(report: SimReport, stage: Stage) -> Fault:
    found = _diagnostics(report, stage)
    if not found:
        message = report.message or report.status.value
        found = (Diagnostic(stage=stage, rule=report.status.value, message=message),)
    return Fault(_FAULT_STATUS[report.status], found)


def _diagnostics(report: SimReport, stage: Stage) -> tuple[Diagnostic, ...]:
    return tuple(
        Diagnostic(
            stage=stage,
            rule=finding.kind.value,
            message=_sentence(finding),
            line=finding.line,
            severe=finding.severity is Severity.ERROR,
        )
        for finding in report.findings
    )


def _sentence(finding: Finding) -> str:
    """Kernel, element, what happened, and which thread did it."""
    element = f" at {finding.buffer}[{finding.index}]" if finding.buffer and finding.index is not None else ""
    where = element or (f" in {finding.buffer}" if finding.buffer else "")
    return f"{finding.kernel}{where}: {finding.message} (block {finding.block}, thread {finding.thread})"
