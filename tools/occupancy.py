"""Theoretical occupancy: how many blocks of a kernel fit one streaming multiprocessor at once.

The arithmetic and its constants are those of NVIDIA's `cuda_occupancy.h` (CUDA 13, compute capability 7.5 to 12):
registers go to whole warps in units of 256, from four sub-partitions; shared memory goes to blocks in units of
128 bytes (256 before 8.0), and the driver keeps 1 KiB of it per block from 8.0 on.
Does not cover: carve-outs smaller than the maximum, block barriers, clusters, cooperative launches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from memory.errors import BadInput
from tools.gpus import GpuSpec
from tools.nvrtc_records import KernelResources

Limiter = Literal["threads", "blocks", "registers", "shared", "does-not-fit"]

WARP_THREADS = 32
MAX_BLOCK_THREADS = 1024
MAX_THREAD_REGISTERS = 255
_REGISTER_UNIT = 256
_SUB_PARTITIONS = 4
_AMPERE = 8


@dataclass(frozen=True)
class Occupancy:
    """Residency of one kernel on one SM."""

    blocks_per_sm: int
    warps_per_sm: int
    fraction: float
    """Resident warps over the most the SM can hold, 0 to 1."""
    limiter: Limiter
    """The first resource to run out; `does-not-fit` where not even one block fits."""


def theoretical_occupancy(
    resources: KernelResources, block_threads: int, dynamic_shared_bytes: int, gpu: GpuSpec
) -> Occupancy:
    """Blocks and warps of one kernel that an SM of `gpu` holds at once.

    Raises: BadInput for a block size outside 1..1024 or negative shared memory.
    """
    if not 1 <= block_threads <= MAX_BLOCK_THREADS:
        raise BadInput(f"block of {block_threads!r} threads: a block has 1 to {MAX_BLOCK_THREADS}")
    if dynamic_shared_bytes < 0:
        raise BadInput(f"dynamic shared memory of {dynamic_shared_bytes!r} bytes: it cannot be negative")
    warps = _ceil_div(block_threads, WARP_THREADS)
    max_warps = gpu.max_threads_per_sm // WARP_THREADS
    limits: dict[Limiter, int] = {
        "threads": max_warps // warps,
        "blocks": gpu.max_blocks_per_sm,
        "registers": _register_limit(resources.registers, warps, gpu),
        "shared": _shared_limit(resources.static_shared_bytes + dynamic_shared_bytes, gpu),
    }
    limiter = min(limits, key=lambda name: limits[name])
    blocks = limits[limiter]
    if blocks == 0:
        return Occupancy(0, 0, 0.0, "does-not-fit")
    return Occupancy(blocks, blocks * warps, blocks * warps / max_warps, limiter)


def _register_limit(registers: int, warps: int, gpu: GpuSpec) -> int:
    """Blocks by registers; the launch check rounds a block up to whole sub-partitions."""
    if registers == 0:
        return gpu.max_blocks_per_sm
    per_warp = _round_up(registers * WARP_THREADS, _REGISTER_UNIT)
    checked = per_warp * _round_up(warps, _SUB_PARTITIONS)
    if registers > MAX_THREAD_REGISTERS or checked > gpu.regs_per_sm:
        return 0
    warps_per_partition = gpu.regs_per_sm // _SUB_PARTITIONS // per_warp
    return warps_per_partition * _SUB_PARTITIONS // warps


def _shared_limit(requested_bytes: int, gpu: GpuSpec) -> int:
    """Blocks by shared memory, with the largest carve-out the SM allows."""
    ampere_or_later = _major(gpu.arch) >= _AMPERE
    if requested_bytes > gpu.smem_per_block_bytes:
        return 0
    reserved = 1024 if ampere_or_later else 0
    taken = _round_up(requested_bytes + reserved, 128 if ampere_or_later else 256)
    return gpu.smem_per_sm_bytes // taken if taken else gpu.max_blocks_per_sm


def _major(arch: str) -> int:
    match = re.fullmatch(r"sm_(\d+)\d[af]?", arch)
    if match is None:
        raise BadInput(f"architecture {arch!r} is not like sm_90 or sm_90a")
    return int(match[1])


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _round_up(a: int, unit: int) -> int:
    return _ceil_div(a, unit) * unit
