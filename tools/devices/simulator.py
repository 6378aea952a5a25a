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
from tools.devices.compiling import compile_plan
from tools.devices.faults import fault, garbled, modified
from tools.devices.library import LibraryFault
from tools.devices.modelling import launch_of, model_plan
from tools.devices.port import Executed, Fault, Measured
from tools.devices.simulated_memory import (
    MAX_FILLED_BYTES,
    POISONS,
    SimulatedMemory,
    filled_bytes,
    invalid_booleans,
)
from tools.gpus import GpuSpec
from tools.nvrtc import NvrtcCompiler
from tools.simulator.arena import MAX_BUFFER_BYTES
from tools.simulator.compiler import HostCompileError, HostCompiler, HostLibrary
from tools.simulator.report import Finding, KernelMetrics, RunStatus, Severity, SimReport
from tools.simulator.runner import Mode, Simulator

MAX_LAUNCHES = 4000
"""Launches given to the simulator in one run; it takes at most 4,096."""

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
        compiled = compile_plan(self.nvrtc, plan, self.gpu)
        if isinstance(compiled, Fault):
            return compiled
        needed = filled_bytes(plan)
        if needed > MAX_FILLED_BYTES:
            message = f"one forward fills {needed / 1e9:.1f} GB; the simulator takes {MAX_FILLED_BYTES / 1e9:.1f} GB"
            return fault(Status.OUT_OF_MEMORY, Stage.COMPILE, "memory", message)
        return SimulatedProgram(self, plan)

    def measure(self, plan: BoundPlan) -> Measured | Fault:
        """Modelled time at the plan's own shapes from a few sampled blocks of every kernel."""
        largest = max((b.spec.bytes for b in plan.buffers.values()), default=0)
        if largest > MAX_BUFFER_BYTES:
            message = (
                f"a buffer of {largest / 1e9:.1f} GB; the simulator takes {MAX_BUFFER_BYTES / 1e9:.1f} GB"
            )
            return fault(Status.OUT_OF_MEMORY, Stage.TIMING, "memory", message)
        compiled = compile_plan(self.nvrtc, plan, self.gpu)
        if isinstance(compiled, Fault):
            return compiled
        metrics = self._sample(plan)
        if isinstance(metrics, Fault):
            return metrics
        return model_plan(plan, metrics, compiled.resources if compiled else {}, self.gpu)

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
        self._prepared = {name for step in plan.prepare for name in _touched(step) if name in plan.buffers}
        self._runs = 0

    def execute(self, given: Mapping[str, Array], *, sanitize: bool) -> Executed | Fault:
        """One forward: buffers poisoned before, inputs, state and prepared buffers checked unmodified after."""
        library: HostLibrary | None = None
        if self._plan.entries:
            compiled = self._device.compile_for_host(self._plan, instrumented=sanitize)
            if isinstance(compiled, Fault):
                return compiled
            library = compiled
        warnings: list[Diagnostic] = []
        with SimulatedMemory(self._plan) as memory:
            memory.fill(given, POISONS[self._runs % len(POISONS)])
            self._runs += 1
            prepared: dict[str, Array] = {}
            for steps in (self._plan.prepare, self._plan.steps):
                outcome = self._run_steps(steps, memory, library, sanitize)
                if isinstance(outcome, Fault):
                    return outcome
                warnings += outcome
                if steps is self._plan.prepare:
                    prepared = memory.snapshot(self._prepared)
            changed = [*memory.changed(given), *memory.altered(prepared)]
            if changed:
                return modified(changed)
            results = memory.results()
        broken = invalid_booleans(results, {name: self._plan.spec(name) for name in results})
        return garbled(broken) if broken else Executed(results, tuple(warnings))

    def _run_steps(
        self,
        steps: tuple[BoundStep, ...],
        memory: SimulatedMemory,
        library: HostLibrary | None,
        sanitize: bool,
    ) -> tuple[Diagnostic, ...] | Fault:
        found: list[Diagnostic] = []
        for is_kernel, members in groupby(steps, lambda s: isinstance(s, BoundKernel)):
            group = list(members)
            for start in range(0, len(group), MAX_LAUNCHES):
                part = group[start : start + MAX_LAUNCHES]
                outcome = self._run_group(part, memory, library if is_kernel else None, sanitize)
                if isinstance(outcome, Fault):
                    return outcome
                found += outcome
        return tuple(found)

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


def _touched(step: BoundStep) -> list[str]:
    if isinstance(step, BoundLibrary):
        return [name for name in step.outputs if name is not None]
    return [argument for argument in step.args if isinstance(argument, str)]


def _run_library(steps: list[BoundLibrary], memory: SimulatedMemory) -> tuple[Diagnostic, ...] | Fault:
    for step in steps:
        try:
            memory.run_library(step)
        except LibraryFault as error:
            return fault(Status.RUNTIME_ERROR, Stage.CORRECTNESS, "library_call", str(error))
    return ()


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
