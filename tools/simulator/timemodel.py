"""A modelled time of one launch on a named GPU: a ranking signal with a band, never a measurement.

The terms (instruction issue, arithmetic pipes, load/store unit, L2 and DRAM, latency, atomics) are combined by a
2-norm, since a kernel overlaps most but not all of its lesser bottlenecks. Constants, the instruction classes and
the L1 rules were chosen while looking at about a dozen H200 durations (adds, transposes, softmax, layer norm, tiled
matmul, histogram): agreement with those (within 1.25x) is in sample. This implementation has had no held-out check;
an earlier prototype of the same design was off by 1.14 in sample and 1.2 on 13 held-out element-wise and softmax
kernels. Treat predicted gains under 20 % as ties. Expected to be weak for half precision, register tiling, double
buffering and low occupancy; tensor cores are not modelled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tools.gpus import GpuSpec
from tools.simulator.launch import Launch
from tools.simulator.report import KernelMetrics

_SECTOR_BYTES = 32
_SCHEDULERS = 4
_REGISTER_UNIT = 256
_SHARED_UNIT = 128
_DRIVER_SHARED_BYTES = 1024

# Latencies in cycles.
_BLOCK_START = 250.0
_DRAM = 900.0
_L2 = 280.0
_L1 = 38.0
_BARRIER = 40.0
_SHUFFLE = 26.0
_SHARED = 30.0
# Loads of consecutive loop rounds that a thread keeps in flight.
_OVERLAP = 4.0

# Sectors a nanosecond that L2 takes where a store fills only a part of one.
_PARTIAL_STORES_PER_NS = 62.0
# Lane atomics a nanosecond on one 128-byte line, and the most over all lines.
_ATOMICS_PER_LINE_NS = 0.49
_ATOMICS_PER_NS = 100.0
_SHARED_ATOMICS_PER_CYCLE = 1.35
_BAND = 1.4
_WIDE_BAND = 2.0


@dataclass(frozen=True)
class KernelResources:
    """What ptxas says of a kernel: registers a thread, static shared bytes a block, spilled bytes a thread."""

    registers: int
    static_shared_bytes: int = 0
    spill_bytes: int = 0


@dataclass(frozen=True)
class ModelledTime:
    """Modelled, not measured. `limiter` names the largest of `terms`, which are in µs and overlap."""

    us: float
    limiter: str
    low_us: float
    high_us: float
    terms: Mapping[str, float]


def modelled_kernel_us(
    metrics: KernelMetrics, resources: KernelResources, launch: Launch, gpu: GpuSpec
) -> ModelledTime:
    """Device time of one launch with a cold cache, in µs.

    Raises: ValueError where a block does not fit the GPU at all.
    """
    resident = blocks_per_sm(resources, launch, gpu)
    terms = {
        **_pipe_terms(metrics, resources, gpu),
        **_memory_terms(metrics, gpu),
        **_atomic_terms(metrics, gpu),
        "latency": _latency_us(metrics, resident, gpu),
    }
    busy = math.sqrt(sum(value * value for value in terms.values()))
    total = gpu.launch_us + busy
    limiter = max(terms, key=lambda name: terms[name])
    if gpu.launch_us > busy:
        limiter = "launch"
    uncertain = (
        metrics.truncated or resources.spill_bytes > 0 or metrics.sampled_blocks < min(4, metrics.blocks)
    )
    band = _WIDE_BAND if uncertain else _BAND
    return ModelledTime(total, limiter, total / band, total * band, {"launch": gpu.launch_us, **terms})


def blocks_per_sm(resources: KernelResources, launch: Launch, gpu: GpuSpec) -> int:
    """Blocks that one SM holds at a time. Raises ValueError where not even one fits."""
    threads = math.prod(launch.block)
    warps = -(-threads // 32)
    limits = [gpu.max_blocks_per_sm, gpu.max_threads_per_sm // (warps * 32)]
    registers_a_warp = -(-max(resources.registers, 1) * 32 // _REGISTER_UNIT) * _REGISTER_UNIT
    limits.append(gpu.regs_per_sm // (registers_a_warp * warps))
    shared = resources.static_shared_bytes + launch.shared_bytes
    shared = -(-shared // _SHARED_UNIT) * _SHARED_UNIT + _DRIVER_SHARED_BYTES
    limits.append(gpu.smem_per_sm_bytes // shared)
    if min(limits) < 1:
        raise ValueError(
            f"a block of {launch.entry!r} does not fit {gpu.name}: {threads} threads, {shared} shared bytes"
        )
    return min(limits)


def _balance(blocks: int, gpu: GpuSpec) -> float:
    """Factor by which the busiest SM has more blocks than the average one."""
    return math.ceil(blocks / gpu.sms) * gpu.sms / blocks if blocks < 4 * gpu.sms else 1.0


def _pipe_terms(m: KernelMetrics, resources: KernelResources, gpu: GpuSpec) -> dict[str, float]:
    cycles_us = gpu.sms * gpu.clock_mhz / _balance(m.blocks, gpu)
    # A fused multiply-add is two operations, a warp instruction 32 of them.
    fp64_per_us = gpu.fp64_tflops * 1e6 / 64 / _balance(m.blocks, gpu)
    spills = resources.spill_bytes / 4 * m.warps
    # The tag stage takes one 128-byte line a cycle: scattered lanes take one each.
    wavefronts = m.shared_load_wavefronts + m.shared_store_wavefronts + m.shuffles * 2
    return {
        "issue": (m.instructions + spills) / (_SCHEDULERS * cycles_us),
        "fp32": (m.fma_instructions + m.fp32_instructions) / (_SCHEDULERS * cycles_us),
        "fp64": m.fp64_instructions / fp64_per_us,
        "special": m.special_instructions / (0.5 * cycles_us),
        "load_store": (wavefronts + m.global_lines) / cycles_us,
    }


def _memory_terms(m: KernelMetrics, gpu: GpuSpec) -> dict[str, float]:
    written = m.dram_write_bytes
    # L2 keeps part of what was written last; it reaches DRAM after the kernel has ended.
    kept = min(written, 0.25 * gpu.l2_bytes)
    dram_us = (m.dram_read_bytes + written - kept) / (gpu.dram_gbps * 1e3)
    partial = max(0.0, m.global_store_sectors - written / _SECTOR_BYTES)
    l2_us = (m.l2_sectors - partial) * _SECTOR_BYTES / (gpu.l2_gbps * 1e3) + partial / (
        _PARTIAL_STORES_PER_NS * 1e3
    )
    return {"dram": dram_us, "l2": 0.0} if dram_us >= l2_us else {"dram": 0.0, "l2": l2_us}


def _atomic_terms(m: KernelMetrics, gpu: GpuSpec) -> dict[str, float]:
    global_us = 0.0
    if m.atomics:
        lines = max(1.0, m.dram_write_bytes / 128)
        global_us = m.atomics / (min(_ATOMICS_PER_LINE_NS * lines, _ATOMICS_PER_NS) * 1e3)
    shared_us = m.shared_atomics / (_SHARED_ATOMICS_PER_CYCLE * gpu.sms * gpu.clock_mhz)
    return {"global_atomics": global_us, "shared_atomics": shared_us}


def _latency_us(m: KernelMetrics, resident: int, gpu: GpuSpec) -> float:
    """Time of the waves of resident blocks if each block did nothing but wait for its own chain."""
    warps = max(m.warps, 1.0)
    rounds = m.dependent_loads / warps
    first = min(rounds, 1.0)
    chain = _BLOCK_START + (first + (rounds - first) / _OVERLAP) * _load_cycles(m)
    chain += m.barriers / m.blocks * _BARRIER + m.shuffles / warps * _SHUFFLE
    chain += (m.shared_load_requests / warps) / _OVERLAP * _SHARED
    waves = max(1.0, m.blocks / (resident * gpu.sms))
    return waves * chain / gpu.clock_mhz


def _load_cycles(m: KernelMetrics) -> float:
    """Mean latency of a load round, by where its sectors come from."""
    sectors = max(m.global_load_sectors, 1.0)
    loaded_l2 = max(m.l2_sectors - m.global_store_sectors - m.atomic_sectors, 0.0)
    from_dram = min(1.0, m.dram_read_bytes / _SECTOR_BYTES / sectors)
    from_l2 = min(1.0 - from_dram, max(0.0, loaded_l2 / sectors - from_dram))
    return from_dram * _DRAM + from_l2 * _L2 + (1.0 - from_dram - from_l2) * _L1
