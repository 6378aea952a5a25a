"""Modelled time of a plan: sampled kernel metrics and library costs, put on one timeline. Pure.

Every number here is modelled. The band of a kernel comes from its time model, that of a library call is
`LIBRARY_BAND`; a gain within the bands is a tie.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memory.records import StepProfile
from tools.binding import BoundKernel, BoundLibrary, BoundPlan, BoundScalar
from tools.devices.port import Measured
from tools.gpus import GpuSpec
from tools.nvrtc import KernelResources as PtxasResources
from tools.occupancy import theoretical_occupancy
from tools.roofline import StepTime, library_flops, library_time, short_name, timeline_us
from tools.simulator.launch import BufferArg, Launch, ScalarArg
from tools.simulator.report import KernelMetrics
from tools.simulator.timemodel import KernelResources, modelled_kernel_us

LIBRARY_BAND = 1.15
"""A library call's modelled time is taken to hold within this factor either way."""


@dataclass(frozen=True)
class _Modelled:
    """One step with its band, in µs, and its profile."""

    low: StepTime
    middle: StepTime
    high: StepTime
    profile: StepProfile


def model_plan(
    plan: BoundPlan,
    metrics: Mapping[BoundKernel, KernelMetrics],
    resources: Mapping[str, PtxasResources],
    gpu: GpuSpec,
) -> Measured:
    """Modelled time of one forward of `plan` (its `prepare` steps run once and are not counted)."""
    cache: dict[BoundKernel, _Modelled] = {}
    modelled: list[_Modelled] = [_fill(plan, name, gpu) for name, b in plan.buffers.items() if b.zero]
    for step in plan.steps:
        if isinstance(step, BoundKernel):
            if step not in cache:
                cache[step] = _kernel(step, metrics[step], resources[step.entry], gpu)
            modelled.append(cache[step])
        else:
            modelled.append(_library(step, plan, gpu))
    return Measured(
        median_us=timeline_us(m.middle for m in modelled),
        low_us=timeline_us(m.low for m in modelled),
        high_us=timeline_us(m.high for m in modelled),
        rounds=None,
        steps=_merged([m.profile for m in modelled]),
    )


def launch_of(step: BoundKernel) -> Launch:
    """The simulator's form of one bound launch."""
    return Launch(
        entry=step.entry,
        grid=step.grid,
        block=step.block,
        shared_bytes=step.shared_bytes,
        args=tuple(
            ScalarArg(a.ctype, a.value) if isinstance(a, BoundScalar) else BufferArg(a) for a in step.args
        ),
    )


def _kernel(step: BoundKernel, metrics: KernelMetrics, ptxas: PtxasResources, gpu: GpuSpec) -> _Modelled:
    spilled = ptxas.spill_store_bytes + ptxas.spill_load_bytes
    resources = KernelResources(ptxas.registers, ptxas.static_shared_bytes, spilled)
    time = modelled_kernel_us(metrics, resources, launch_of(step), gpu)
    threads = step.block[0] * step.block[1] * step.block[2]
    occupancy = theoretical_occupancy(ptxas, threads, step.shared_bytes, gpu)
    requests = metrics.global_load_requests
    profile = StepProfile(
        name=step.entry,
        authored=True,
        us=time.us,
        limiter=time.limiter,
        dram_bytes=metrics.dram_read_bytes + metrics.dram_write_bytes,
        flops=32.0 * (metrics.fp32_instructions + metrics.fp64_instructions + 2 * metrics.fma_instructions),
        occupancy=occupancy.fraction,
        registers=ptxas.registers,
        shared_bytes=ptxas.static_shared_bytes + step.shared_bytes,
        spill_bytes=spilled,
        load_sectors_per_request=metrics.global_load_sectors / requests if requests else None,
        bank_conflicts=metrics.bank_conflicts,
    )
    host = gpu.host_launch_us
    return _Modelled(
        StepTime(time.low_us, host), StepTime(time.us, host), StepTime(time.high_us, host), profile
    )


def _library(step: BoundLibrary, plan: BoundPlan, gpu: GpuSpec) -> _Modelled:
    reads = [plan.spec(name) for name in step.reads]
    writes = [plan.spec(name) for name in step.outputs if name is not None]
    time = library_time(step.op, reads, writes, gpu)
    moved = float(sum(spec.bytes for spec in (*reads, *writes))) if time.device_us else 0.0
    flops = library_flops(step.op, reads, writes) if time.device_us else 0.0
    return _banded(short_name(step.op), time, moved, flops)


def _fill(plan: BoundPlan, name: str, gpu: GpuSpec) -> _Modelled:
    """Zeroing a buffer before the steps."""
    spec = plan.spec(name)
    return _banded("fill", library_time("aten.zero.default", [], [spec], gpu), float(spec.bytes), 0.0)


def _banded(name: str, time: StepTime, moved: float, flops: float) -> _Modelled:
    limiter = "compute" if flops > 100 * moved else "dram"
    profile = StepProfile(
        name=name, authored=False, us=time.device_us, limiter=limiter, dram_bytes=moved, flops=flops
    )
    low = StepTime(time.device_us / LIBRARY_BAND, time.host_us)
    return _Modelled(low, time, StepTime(time.device_us * LIBRARY_BAND, time.host_us), profile)


def _merged(profiles: list[StepProfile]) -> tuple[StepProfile, ...]:
    """One row a name, in first-use order; repeated steps add up. Views, which cost nothing, are left out."""
    rows: dict[str, StepProfile] = {}
    for profile in profiles:
        if profile.us == 0.0:
            continue
        first = rows.get(profile.name)
        if first is None:
            rows[profile.name] = profile
            continue
        total = {
            "us": first.us + profile.us,
            "dram_bytes": first.dram_bytes + profile.dram_bytes,
            "flops": first.flops + profile.flops,
        }
        rows[profile.name] = first.model_copy(update=total)
    return tuple(rows.values())
