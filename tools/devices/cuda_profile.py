"""Where a plan's time goes on a GPU: events around each step, and an estimate of what limits it.

Times are measured, in a pass of their own (events between steps cost a little, so they never enter the plan's time).
The limiter is an estimate: bytes of a step's tensors, each counted once, over its time, against the GPU's rates. A
kernel that reads a tensor twice, or none of it, has other traffic than it is given here; Nsight Compute knows.
"""

from __future__ import annotations

import itertools
import statistics
from typing import Protocol

import torch

from memory.records import StepProfile
from tools.binding import BoundKernel, BoundLibrary, BoundPlan
from tools.devices.cuda_plan import Tensors
from tools.devices.cuda_program import CudaProgram
from tools.gpus import GpuSpec
from tools.nvrtc import KernelResources
from tools.occupancy import theoretical_occupancy
from tools.roofline import VIEW_OPERATIONS, library_flops, short_name

PASSES = 5
MAX_STEPS = 512
"""Longer plans are profiled over their first steps only."""
_HOST_STEP_US = 25.0
"""Host time of a step with its events, generously: the device is kept busy that long first."""
_FLUSH_US = 150.0
_MAX_FLUSHES = 40
_BUSY = 0.5
"""Share of a rate from which on a step is called limited by it."""


class _Cooler(Protocol):
    def cool(self) -> None: ...


def profile_steps(program: CudaProgram, tensors: Tensors, timer: _Cooler) -> tuple[StepProfile, ...]:
    """Median time of each step over some passes; one row a name, repeated steps added up. Views are left out."""
    count = min(len(program.plan.steps), MAX_STEPS)
    program.runner.zero(tensors)
    times: list[list[float]] = [[] for _ in range(count)]
    for _ in range(PASSES):
        for index, taken in enumerate(_one_pass(program, tensors, timer, count)):
            times[index].append(taken)
    rows: dict[str, StepProfile] = {}
    for step, taken_us in zip(program.plan.steps, times, strict=False):
        if isinstance(step, BoundLibrary) and short_name(step.op) in VIEW_OPERATIONS:
            continue
        row = _profile(step, statistics.median(taken_us), program)
        first = rows.get(row.name)
        rows[row.name] = row if first is None else _added(first, row)
    return tuple(rows.values())


def _one_pass(program: CudaProgram, tensors: Tensors, timer: _Cooler, count: int) -> list[float]:
    """Times in µs of the steps, issued while the device is still busy with flushes."""
    values = dict(tensors)
    for _ in range(min(_MAX_FLUSHES, 1 + int(count * _HOST_STEP_US / _FLUSH_US))):
        timer.cool()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]  # type: ignore[no-untyped-call]
    marks[0].record()
    for index in range(count):
        program.runner.step(index, values)
        marks[index + 1].record()
    torch.cuda.synchronize(program.context.device)
    return [float(a.elapsed_time(b)) * 1e3 for a, b in itertools.pairwise(marks)]


def _profile(step: BoundKernel | BoundLibrary, taken_us: float, program: CudaProgram) -> StepProfile:
    plan, gpu = program.plan, program.context.gpu
    if isinstance(step, BoundLibrary):
        reads = [plan.spec(name) for name in dict.fromkeys(step.reads)]
        writes = [plan.spec(name) for name in step.outputs if name is not None]
        moved = float(sum(spec.bytes for spec in (*reads, *writes)))
        flops = library_flops(step.op, reads, writes)
        return StepProfile(
            name=short_name(step.op),
            authored=False,
            us=taken_us,
            limiter=limiter_of(taken_us, moved, flops, gpu),
            dram_bytes=moved,
            flops=flops,
        )
    return _kernel_profile(step, taken_us, plan, program.resources[step.entry], gpu)


def _kernel_profile(
    step: BoundKernel, taken_us: float, plan: BoundPlan, needs: KernelResources, gpu: GpuSpec
) -> StepProfile:
    moved = float(sum(plan.spec(name).bytes for name in {a for a in step.args if isinstance(a, str)}))
    threads = step.block[0] * step.block[1] * step.block[2]
    return StepProfile(
        name=step.entry,
        authored=True,
        us=taken_us,
        limiter=limiter_of(taken_us, moved, 0.0, gpu),
        dram_bytes=moved,
        flops=0.0,
        occupancy=theoretical_occupancy(needs, threads, step.shared_bytes, gpu).fraction,
        registers=needs.registers,
        shared_bytes=needs.static_shared_bytes + step.shared_bytes,
        spill_bytes=needs.spill_store_bytes + needs.spill_load_bytes,
    )


def limiter_of(taken_us: float, moved_bytes: float, flops: float, gpu: GpuSpec) -> str:
    """`dram`, `compute`, `launch` or, where none explains the time, `latency`. flops 0: not known."""
    if taken_us <= 2.5 * gpu.launch_us:
        return "launch"
    if moved_bytes / (taken_us * gpu.dram_gbps * 1e3) >= _BUSY:
        return "dram"
    if flops / (taken_us * gpu.fp32_tflops * 1e6) >= _BUSY:
        return "compute"
    return "latency"


def _added(first: StepProfile, row: StepProfile) -> StepProfile:
    total = {
        "us": first.us + row.us,
        "dram_bytes": first.dram_bytes + row.dram_bytes,
        "flops": first.flops + row.flops,
    }
    return first.model_copy(update=total)
