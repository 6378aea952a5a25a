"""Modelled time of a plan: sampled kernel metrics and library costs, put on one timeline. Pure.

Every number here is modelled. The band of a kernel comes from its time model, that of a library call is
`LIBRARY_BAND`; a gain within the bands is a tie.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from memory.records import StepProfile, TensorSpec
from tools.binding import BoundKernel, BoundLibrary, BoundPlan, BoundScalar
from tools.devices.dispatched import dispatched
from tools.devices.port import Measured
from tools.gpus import GpuSpec
from tools.nvrtc import KernelResources as PtxasResources
from tools.occupancy import theoretical_occupancy
from tools.roofline import StepTime, library_time, timeline_us
from tools.simulator.launch import BufferArg, Launch, ScalarArg
from tools.simulator.report import KernelMetrics
from tools.simulator.timemodel import KernelResources, modelled_kernel_us
from tools.work import Call, call_bytes, call_flops

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
    specs = {**plan.given, **{name: buffer.spec for name, buffer in plan.buffers.items()}}
    for step in plan.prepare:
        if isinstance(step, BoundLibrary):
            _library(step, plan, specs, gpu)
    for step in plan.steps:
        if isinstance(step, BoundKernel):
            if step not in cache:
                cache[step] = _kernel(step, metrics[step], resources[step.entry], gpu)
            modelled.append(cache[step])
        else:
            modelled += _library(step, plan, specs, gpu)
    if plan.replay:
        modelled = _replayed(modelled, plan, gpu)
    return Measured(
        median_us=timeline_us(m.middle for m in modelled),
        low_us=timeline_us(m.low for m in modelled),
        high_us=timeline_us(m.high for m in modelled),
        rounds=None,
        steps=_merged([m.profile for m in modelled]),
    )


def _replayed(steps: list[_Modelled], plan: BoundPlan, gpu: GpuSpec) -> list[_Modelled]:
    """The same steps in one CUDA graph: inputs copied in, one launch for all of them, results copied out."""
    copies = [_copy(plan, name, gpu) for name in plan.inputs]
    clones = [_copy(plan, name, gpu) for name in plan.results]
    launch = StepTime(0.0, gpu.host_launch_us)
    whole = _Modelled(launch, launch, launch, _free("graph launch"))
    held = [
        replace(m, low=_on_device(m.low), middle=_on_device(m.middle), high=_on_device(m.high)) for m in steps
    ]
    return [*copies, whole, *held, *clones]


def _on_device(time: StepTime) -> StepTime:
    """Without the host's part, which the graph has paid."""
    return StepTime(time.device_us, 0.0)


def _copy(plan: BoundPlan, name: str, gpu: GpuSpec) -> _Modelled:
    spec = plan.spec(name)
    return _called(Call("aten.clone.default", (name,), {}, (name,), (spec,), (spec,)), gpu, "copy")


def _free(name: str) -> StepProfile:
    return StepProfile(name=name, authored=False, us=0.0, limiter="launch", dram_bytes=0.0, flops=0.0)


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
    loads, stores = metrics.global_load_requests, metrics.global_store_requests
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
        load_sectors_per_request=metrics.global_load_sectors / loads if loads else None,
        store_sectors_per_request=metrics.global_store_sectors / stores if stores else None,
        bank_conflicts=metrics.bank_conflicts,
    )
    host = gpu.host_launch_us
    return _Modelled(
        StepTime(time.low_us, host), StepTime(time.us, host), StepTime(time.high_us, host), profile
    )


def _library(
    step: BoundLibrary, plan: BoundPlan, specs: dict[str, TensorSpec], gpu: GpuSpec
) -> list[_Modelled]:
    """The operations that the step runs; `specs` learns the strides of its results."""
    done = dispatched(step, specs)
    for name, spec in zip(step.outputs, done.results, strict=False):
        if name is not None and spec is not None and not plan.buffers[name].contiguous:
            specs[name] = spec
    return [_called(call, gpu) for call in done.calls]


def _fill(plan: BoundPlan, name: str, gpu: GpuSpec) -> _Modelled:
    """Zeroing a buffer before the steps."""
    return _called(Call("aten.zeros.default", (), {}, (), (), (plan.spec(name),)), gpu, "fill")


def _called(call: Call, gpu: GpuSpec, name: str = "") -> _Modelled:
    """One call of the library; `name` stands for the operation's own in the profile."""
    time = library_time(call, gpu)
    moved, flops = float(call_bytes(call)), float(call_flops(call))
    profile = StepProfile(
        name=name or call.short,
        authored=False,
        us=time.device_us,
        limiter="compute" if flops > 100 * moved else "dram",
        dram_bytes=moved,
        flops=flops,
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
