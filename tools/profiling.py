"""The profiler's summary of a timed program: what limits it, in numbers and one sentence. Pure."""

from __future__ import annotations

from typing import Literal

from memory.records import Profile, StepProfile
from tools.devices.port import Measured
from tools.roofline import EVENT_US

LOW_OCCUPANCY = 0.35
"""Below this theoretical occupancy a latency-bound kernel is called occupancy-bound."""

_Bottleneck = Literal["memory", "compute", "latency", "launch", "occupancy", "library"]


def summarise(measured: Measured, floor_us: float) -> Profile:
    """Name the bottleneck of a timed program. `floor_us` is its problem's speed of light in µs."""
    device_us = sum(step.us for step in measured.steps)
    authored_us = sum(step.us for step in measured.steps if step.authored)
    bottleneck, explanation = _bottleneck(measured, device_us)
    return Profile(
        steps=measured.steps,
        bottleneck=bottleneck,
        explanation=explanation,
        floor_fraction=min(floor_us / measured.median_us, 1.0),
        authored_share=authored_us / device_us if device_us else 0.0,
    )


def _bottleneck(measured: Measured, device_us: float) -> tuple[_Bottleneck, str]:
    if not measured.steps or device_us < 0.6 * (measured.median_us - EVENT_US):
        idle = measured.median_us - device_us
        return "launch", (
            f"the device is idle for {idle:.1f} of {measured.median_us:.1f} µs while {len(measured.steps)} "
            "distinct steps are issued: fewer, larger launches would help"
        )
    worst = max(measured.steps, key=lambda step: step.us)
    share = worst.us / device_us
    lead = f"{worst.name} takes {worst.us:.1f} µs, {share:.0%} of device time"
    if not worst.authored:
        return "library", f"{lead}, in a library call limited by {worst.limiter}"
    return _kernel_bottleneck(worst), f"{lead}, limited by {worst.limiter}{_numbers(worst)}"


def _kernel_bottleneck(step: StepProfile) -> _Bottleneck:
    if step.limiter in ("dram", "l2", "load_store", "global_atomics", "shared_atomics"):
        return "memory"
    if step.limiter == "launch":
        return "launch"
    if step.limiter == "latency":
        return "occupancy" if step.occupancy is not None and step.occupancy < LOW_OCCUPANCY else "latency"
    return "compute"


def _numbers(step: StepProfile) -> str:
    parts = [f"{step.dram_bytes / step.us / 1e3:,.0f} GB/s of DRAM traffic"] if step.us else []
    if step.occupancy is not None:
        parts.append(f"occupancy {step.occupancy:.0%}")
    if step.load_sectors_per_request is not None:
        parts.append(f"{step.load_sectors_per_request:.1f} sectors per load request")
    if step.bank_conflicts:
        parts.append(f"{step.bank_conflicts:,.0f} bank conflicts")
    if step.spill_bytes:
        parts.append(f"{step.spill_bytes} bytes spilled")
    return f" ({', '.join(parts)})" if parts else ""
