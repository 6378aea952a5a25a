"""Where a candidate's kernels stand under the roofs of the run's GPU. Pure; the drawing is the app's.

Invariant: a kernel without FLOPs, DRAM bytes or time has no place in a log-log plot and is named, not drawn at a guess.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory.records import Problem, Profile, Run
from tools.gpus import GPUS, GpuSpec
from tools.roofline import floor_of


@dataclass(frozen=True)
class Roofs:
    """Limits of one GPU for one dtype."""

    gpu: str
    bandwidth_gbps: float
    """DRAM, 10^9 bytes a second, as a copy reaches it."""
    peak_tflops: float
    """Of the fastest unit for the problem's dtype, which the floor assumes."""
    plain_tflops: float
    """Of plain FP32 arithmetic; equal to the peak where there is nothing faster."""

    def reachable_tflops(self, intensity: float) -> float:
        """The lower of the two roofs at an arithmetic intensity in FLOP a byte."""
        return min(self.bandwidth_gbps * intensity / 1e3, self.peak_tflops)


@dataclass(frozen=True)
class Dot:
    """One step of a plan."""

    name: str
    authored: bool
    """True for a kernel of the Program."""
    intensity: float
    """FLOP a byte of DRAM traffic."""
    tflops: float
    """Achieved, 10^12 a second."""
    share: float
    """Of what the roofs allow at its intensity."""
    us: float
    counted: bool
    """True where hardware counters gave bytes and FLOPs; else they are modelled, or estimated from shapes."""


def gpu_behind(device: str) -> GpuSpec | None:
    """The GPU of a device's name, such as `simulator:h200` or `cuda:NVIDIA H200`; None where it is not in our table."""
    name = device.partition(":")[2].lower().replace(" ", "")
    return next((spec for key, spec in GPUS.items() if key in name), None)


def roofs_of(run: Run, problem: Problem) -> Roofs | None:
    """Of a run's GPU; None where its rates are not known here."""
    gpu = gpu_behind(run.device)
    if gpu is None:
        return None
    peak = floor_of(problem.work, problem.dtype, gpu).tflops
    return Roofs(gpu.name, gpu.dram_gbps, peak, min(gpu.fp32_tflops, peak))


def dots_of(profile: Profile, roofs: Roofs) -> tuple[tuple[Dot, ...], tuple[str, ...]]:
    """The steps that have a place in the plot, and the names of those that have none."""
    dots: list[Dot] = []
    without: list[str] = []
    for step in profile.steps:
        if step.flops <= 0 or step.dram_bytes <= 0 or step.us <= 0:
            without.append(step.name)
            continue
        intensity, tflops = step.flops / step.dram_bytes, step.flops / (step.us * 1e6)
        share = tflops / roofs.reachable_tflops(intensity)
        dots.append(Dot(step.name, step.authored, intensity, tflops, share, step.us, step.counted))
    return tuple(dots), tuple(without)
