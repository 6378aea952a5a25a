"""A bound plan's kernels to a cubin that fits the GPU. Needs NVRTC and no GPU; the same code serves every device."""

from __future__ import annotations

from memory.records import Diagnostic, Stage, Status
from tools.binding import BoundKernel, BoundPlan
from tools.devices.port import Fault
from tools.gpus import GpuSpec
from tools.nvrtc import Compiled, CompileRejected, CompileRequest, NvrtcCompiler
from tools.occupancy import theoretical_occupancy

STATIC_SHARED_BYTES = 48 * 1024
"""CUDA's limit on what a kernel declares. ptxas enforces it up to sm_89; for newer GPUs it lets more through, which
no launch is promised to accept."""


def compile_plan(nvrtc: NvrtcCompiler, plan: BoundPlan, gpu: GpuSpec) -> Compiled | Fault | None:
    """The plan's kernels as a cubin; None where it has no kernels. Raises ToolMissing without NVRTC."""
    if not plan.entries:
        return None
    compiled = nvrtc.compile(compile_request(plan, gpu))
    if isinstance(compiled, CompileRejected):
        return _rejected(compiled)
    return _resource_fault(plan, compiled, gpu) or compiled


def compile_request(plan: BoundPlan, gpu: GpuSpec) -> CompileRequest:
    """What NVRTC is asked for; equal requests are one cache entry, whoever compiles first."""
    return CompileRequest(plan.source, gpu.arch, tuple(sorted(plan.defines.items())), plan.entries)


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
    for entry, needs in compiled.resources.items():
        if needs.static_shared_bytes > STATIC_SHARED_BYTES:
            return _too_much(
                "shared_memory",
                f"{entry} declares {needs.static_shared_bytes:,} bytes of static shared memory, and static arrays may "
                f"have {STATIC_SHARED_BYTES:,} together; declare `extern __shared__` and give the launch shared_bytes "
                f"(up to {gpu.smem_per_block_bytes:,} on {gpu.name})",
            )
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
