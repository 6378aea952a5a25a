"""The profiler's summary of a timed program: what limits it, in numbers and one sentence. Pure.

Here: events, ptxas' figures and the model alone, or hardware counters merged in where there are any; each kernel's
share of its roofline. Not here: where the numbers come from (tools.devices, tools.nsight).
The roofline's ceilings are those of the floors: the bandwidth that a copy reaches, and the arithmetic units' rates. A
kernel that moves more bytes than it must can reach them all the same; the floor fraction of the whole tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memory.records import Profile, StepProfile, Timing
from tools.devices.port import Measured
from tools.gpus import GpuSpec
from tools.nsight_counters import stall_meaning
from tools.nsight_records import Counted, CountersAbsent, KernelCounters
from tools.roofline import EVENT_US

LOW_OCCUPANCY = 0.35
"""Below this occupancy a latency-bound kernel is called occupancy-bound."""
_BUSY = 0.6
"""Share of a unit's peak from which on a counted kernel is called limited by it; Nsight Compute's own rule."""
_LAUNCH_FACTOR = 2.5
"""A kernel of fewer launch times is mostly launch."""

_Bottleneck = Literal["memory", "compute", "latency", "launch", "occupancy", "library"]


@dataclass(frozen=True)
class _Timed:
    """The program's time and its bounds, in µs."""

    median_us: float
    floor_us: float


def summarise(
    measured: Measured,
    floor_us: float,
    gpu: GpuSpec | None = None,
    counted: Counted | CountersAbsent | None = None,
) -> Profile:
    """Name the bottleneck of a timed program. `floor_us` is its problem's speed of light in µs.

    gpu: the device's rates; without them no step has a share of the roofline.
    """
    return _summary(measured.steps, _Timed(measured.median_us, floor_us), gpu, counted)


def refine(profile: Profile, timing: Timing, gpu: GpuSpec, counted: Counted | CountersAbsent) -> Profile:
    """A passed candidate's profile again, with what a profiler counted since, or the reason why it could not."""
    return _summary(profile.steps, _Timed(timing.median_us, timing.floor_us), gpu, counted)


def kernel_lines(profile: Profile) -> tuple[str, ...]:
    """One line for each kernel of the Program: its share of the roofline, of what, and whether that is enough."""
    return tuple(f"{step.name}: {_roofline(step)}" for step in profile.steps if step.authored)


def _summary(
    steps: Sequence[StepProfile],
    timed: _Timed,
    gpu: GpuSpec | None,
    counted: Counted | CountersAbsent | None,
) -> Profile:
    if isinstance(counted, Counted) and gpu is not None:
        steps = [_merged(step, counted.kernel(step.name), gpu) for step in steps]
    if gpu is not None:
        steps = [_placed(step, gpu, timed, alone=len(steps) == 1) for step in steps]
    device_us = sum(step.us for step in steps)
    authored_us = sum(step.us for step in steps if step.authored)
    bottleneck, explanation = _bottleneck(steps, timed.median_us, device_us)
    return Profile(
        steps=tuple(steps),
        bottleneck=bottleneck,
        explanation=explanation,
        floor_fraction=min(timed.floor_us / timed.median_us, 1.0),
        authored_share=authored_us / device_us if device_us else 0.0,
        counters_absent=counted.message if isinstance(counted, CountersAbsent) else None,
    )


def _merged(step: StepProfile, kernel: KernelCounters | None, gpu: GpuSpec) -> StepProfile:
    """A step with its kernel's counters. Its time stays the one that was measured without the profiler."""
    if not step.authored or kernel is None or not kernel.us:
        return step
    moved = kernel.dram_bytes
    stall, share = kernel.worst_stall or (None, None)
    fresh: dict[str, object] = {
        "counted": True,
        "limiter": _limiter(kernel, gpu),
        "dram_bytes": step.dram_bytes if moved is None else moved,
        "flops": kernel.fp32_flops + kernel.fp64_flops if kernel.instructions else step.flops,
        "occupancy": kernel.occupancy_theoretical if step.occupancy is None else step.occupancy,
        "load_sectors_per_request": kernel.load_sectors_per_request,
        "store_sectors_per_request": kernel.store_sectors_per_request,
        "bank_conflicts": kernel.bank_conflicts,
        "achieved_occupancy": kernel.occupancy_achieved,
        "dram_gbps": None if moved is None else moved / kernel.us / 1e3,
        "dram_fraction": _dram_fraction(kernel, gpu),
        "compute_fraction": _compute_fraction(kernel, gpu),
        "tensor_fraction": kernel.tensor_active,
        "l1_hit_rate": kernel.l1_hit_rate,
        "l2_hit_rate": kernel.l2_hit_rate,
        "stall": stall,
        "stall_share": share,
        "instruction_mix": kernel.mix,
    }
    return step.model_copy(update=fresh)


def _placed(step: StepProfile, gpu: GpuSpec, timed: _Timed, *, alone: bool) -> StepProfile:
    """A kernel of the Program under its roofline; without counters from modelled or estimated bytes and FLOPs."""
    if not step.authored or not step.us:
        return step
    dram, compute = step.dram_fraction, step.compute_fraction
    if not step.counted:
        dram = min(step.dram_bytes / (step.us * gpu.dram_gbps * 1e3), 1.0)
        compute = min(step.flops / (step.us * gpu.fp32_tflops * 1e6), 1.0)
    floor = min(timed.floor_us / step.us, 1.0) if alone else None
    known = [share for share in (dram, compute, floor) if share is not None]
    reached = {
        "dram_fraction": dram,
        "compute_fraction": compute,
        "roofline_fraction": max(known, default=None),
    }
    return step.model_copy(update=reached)


def _dram_fraction(kernel: KernelCounters, gpu: GpuSpec) -> float | None:
    if kernel.dram_bytes is None or not kernel.us:
        return kernel.dram_peak
    return min(kernel.dram_bytes / (kernel.us * gpu.dram_gbps * 1e3), 1.0)


def _compute_fraction(kernel: KernelCounters, gpu: GpuSpec) -> float | None:
    shares = [kernel.tensor_active] if kernel.tensor_active is not None else []
    if kernel.instructions and kernel.us:
        shares.append(min(kernel.fp32_flops / (kernel.us * gpu.fp32_tflops * 1e6), 1.0))
        shares.append(min(kernel.fp64_flops / (kernel.us * gpu.fp64_tflops * 1e6), 1.0))
    return max(shares, default=None)


def _limiter(kernel: KernelCounters, gpu: GpuSpec) -> str:
    """The unit that is busiest, where one is busy; else what keeps all of them waiting."""
    if kernel.us is not None and kernel.us / kernel.launches <= _LAUNCH_FACTOR * gpu.launch_us:
        return "launch"
    loads = {
        "dram": _dram_fraction(kernel, gpu),
        "l2": kernel.l2_peak,
        "load_store": kernel.l1_peak,
        "compute": max(kernel.sm_peak or 0.0, kernel.tensor_active or 0.0),
    }
    busiest = max(loads, key=lambda unit: loads[unit] or 0.0)
    return busiest if (loads[busiest] or 0.0) >= _BUSY else "latency"


def _bottleneck(steps: Sequence[StepProfile], median_us: float, device_us: float) -> tuple[_Bottleneck, str]:
    if not steps or device_us < 0.6 * (median_us - EVENT_US):
        idle = median_us - device_us
        return "launch", (
            f"the device is idle for {idle:.1f} of {median_us:.1f} µs while {len(steps)} "
            "distinct steps are issued: fewer, larger launches would help"
        )
    worst = max(steps, key=lambda step: step.us)
    share = worst.us / device_us
    lead = f"{worst.name} takes {worst.us:.1f} µs, {share:.0%} of device time"
    if not worst.authored:
        return "library", f"{lead}, in a library call limited by {worst.limiter}"
    below = f"; {_roofline(worst)}" if worst.counted else ""
    return _kernel_bottleneck(worst), f"{lead}, limited by {worst.limiter}{_numbers(worst)}{below}"


def _kernel_bottleneck(step: StepProfile) -> _Bottleneck:
    if step.limiter in ("dram", "l2", "load_store", "global_atomics", "shared_atomics"):
        return "memory"
    if step.limiter == "launch":
        return "launch"
    if step.limiter == "latency":
        resident = step.achieved_occupancy if step.achieved_occupancy is not None else step.occupancy
        return "occupancy" if resident is not None and resident < LOW_OCCUPANCY else "latency"
    return "compute"


def _numbers(step: StepProfile) -> str:
    parts: list[str] = []
    if step.dram_gbps is not None:
        parts.append(f"{step.dram_gbps:,.0f} GB/s of DRAM traffic counted")
    elif step.us:
        parts.append(f"{step.dram_bytes / step.us / 1e3:,.0f} GB/s of DRAM traffic")
    if step.achieved_occupancy is not None and step.occupancy is not None:
        parts.append(f"occupancy {step.achieved_occupancy:.0%} of {step.occupancy:.0%} possible")
    elif step.occupancy is not None:
        parts.append(f"occupancy {step.occupancy:.0%}")
    if step.stall is not None and step.stall_share is not None:
        parts.append(f"warps wait {step.stall_share:.0%} of their time for {stall_meaning(step.stall)}")
    if step.l2_hit_rate is not None:
        parts.append(f"L2 hits {step.l2_hit_rate:.0%}")
    if step.load_sectors_per_request is not None:
        parts.append(f"{step.load_sectors_per_request:.1f} sectors per load request")
    if step.store_sectors_per_request is not None:
        parts.append(f"{step.store_sectors_per_request:.1f} per store request")
    if step.bank_conflicts:
        parts.append(f"{step.bank_conflicts:,.0f} bank conflicts")
    if step.tensor_fraction:
        parts.append(f"tensor cores busy {step.tensor_fraction:.0%}")
    if step.spill_bytes:
        parts.append(f"{step.spill_bytes} bytes spilled")
    return f" ({', '.join(parts)})" if parts else ""


def _roofline(step: StepProfile) -> str:
    if step.roofline_fraction is None:
        return "its share of the roofline is not known"
    parts = [
        f"{name} {share:.0%}"
        for name, share in (("DRAM", step.dram_fraction), ("arithmetic", step.compute_fraction))
        if share is not None
    ]
    of = f" ({', '.join(parts)}{'' if step.counted else ', estimated'})" if parts else ""
    verdict = "reaches" if step.meets_target else "is below"
    target = f"{verdict} the target of {step.ROOFLINE_TARGET:.0%}"
    return f"at {step.roofline_fraction:.0%} of its roofline{of}, which {target}"
