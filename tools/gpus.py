"""Specifications of the GPUs that the simulator can stand for and that floors are computed against.

Rates are what code can reach rather than a datasheet's peak where a measurement exists (`dram_gbps` of the H200:
a device-to-device copy, read plus write); the other figures are the vendor's datasheets and the CUDA C++
Programming Guide's table of compute capabilities. Modelled times inherit these figures' error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from memory.errors import BadInput


@dataclass(frozen=True)
class GpuSpec:
    """One GPU; rates in units of 10^9 bytes or 10^12 operations a second, sizes in bytes."""

    name: str
    arch: str
    sms: int
    clock_mhz: int
    dram_gbps: float
    """Reachable copy bandwidth, bytes read plus written."""
    l2_bytes: int
    l2_gbps: float
    fp32_tflops: float
    fp64_tflops: float
    tf32_tflops: float
    fp16_tflops: float
    """Dense tensor-core rate for fp16 and bf16 with fp32 accumulation."""
    smem_per_sm_bytes: int
    smem_per_block_bytes: int
    regs_per_sm: int
    max_threads_per_sm: int
    max_blocks_per_sm: int
    memory_bytes: int
    launch_us: float = 1.6
    """Device time of an empty kernel."""
    host_launch_us: float = 7.8
    """Host time of one kernel launch through cuda.core; measured on the H200 machine."""
    host_torch_us: float = 11.7
    """Host time of one eager PyTorch operation; measured on the H200 machine."""


_KIB = 1024
_GIB = 1 << 30


class _SmLimits(TypedDict):
    """Limits of one streaming multiprocessor, by architecture."""

    smem_per_sm_bytes: int
    smem_per_block_bytes: int
    regs_per_sm: int
    max_threads_per_sm: int
    max_blocks_per_sm: int


def _limits(smem_kib: int, threads: int, blocks: int) -> _SmLimits:
    # One KiB of every block's shared memory is the driver's.
    return _SmLimits(
        smem_per_sm_bytes=smem_kib * _KIB,
        smem_per_block_bytes=(smem_kib - 1) * _KIB,
        regs_per_sm=65536,
        max_threads_per_sm=threads,
        max_blocks_per_sm=blocks,
    )


_AMPERE = _limits(164, 2048, 32)
_ADA = _limits(100, 1536, 24)
_HOPPER = _limits(228, 2048, 32)
_BLACKWELL = _limits(228, 2048, 32)

_ALL = (
    GpuSpec(
        name="h200", arch="sm_90a", sms=132, clock_mhz=1830, dram_gbps=4300, l2_bytes=60 << 20, l2_gbps=7000,
        fp32_tflops=60, fp64_tflops=30, tf32_tflops=400, fp16_tflops=800, memory_bytes=141 * _GIB, **_HOPPER,
    ),
    GpuSpec(
        name="h100", arch="sm_90a", sms=132, clock_mhz=1830, dram_gbps=3000, l2_bytes=50 << 20, l2_gbps=6500,
        fp32_tflops=60, fp64_tflops=30, tf32_tflops=400, fp16_tflops=800, memory_bytes=80 * _GIB, **_HOPPER,
    ),
    GpuSpec(
        name="a100", arch="sm_80", sms=108, clock_mhz=1410, dram_gbps=1400, l2_bytes=40 << 20, l2_gbps=4500,
        fp32_tflops=19.5, fp64_tflops=9.7, tf32_tflops=140, fp16_tflops=280, memory_bytes=40 * _GIB, **_AMPERE,
    ),
    GpuSpec(
        name="l40s", arch="sm_89", sms=142, clock_mhz=2520, dram_gbps=750, l2_bytes=96 << 20, l2_gbps=5000,
        fp32_tflops=80, fp64_tflops=1.4, tf32_tflops=160, fp16_tflops=330, memory_bytes=48 * _GIB, **_ADA,
    ),
    GpuSpec(
        name="rtx4090", arch="sm_89", sms=128, clock_mhz=2520, dram_gbps=900, l2_bytes=72 << 20, l2_gbps=5000,
        fp32_tflops=80, fp64_tflops=1.3, tf32_tflops=75, fp16_tflops=160, memory_bytes=24 * _GIB, **_ADA,
    ),
    GpuSpec(
        name="b200", arch="sm_100", sms=148, clock_mhz=1850, dram_gbps=7000, l2_bytes=126 << 20, l2_gbps=12000,
        fp32_tflops=75, fp64_tflops=37, tf32_tflops=1000, fp16_tflops=2000, memory_bytes=180 * _GIB, **_BLACKWELL,
    ),
)  # fmt: skip
GPUS: dict[str, GpuSpec] = {spec.name: spec for spec in _ALL}


def gpu_named(name: str) -> GpuSpec:
    """The spec of a named GPU (case-insensitive). Raises BadInput with the known names."""
    spec = GPUS.get(name.lower())
    if spec is None:
        raise BadInput(f"unknown GPU {name!r}; known: {', '.join(GPUS)}")
    return spec


def gpu_for_arch(arch: str) -> GpuSpec:
    """The first known GPU of an architecture such as `sm_90a`. Raises BadInput with the known ones."""
    for spec in GPUS.values():
        if spec.arch == arch or spec.arch.rstrip("a") == arch:
            return spec
    known = ", ".join(sorted({s.arch for s in GPUS.values()}))
    raise BadInput(f"no GPU known for architecture {arch!r}; known: {known}. Name one with --gpu instead")
