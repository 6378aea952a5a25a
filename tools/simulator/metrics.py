"""From a runner's raw counters to KernelMetrics: scales the traced blocks up to the grid and estimates DRAM traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.simulator.launch import Launch
from tools.simulator.machinecode import InstructionMix, block_mixes
from tools.simulator.report import KernelMetrics

# The order of struct Counters in native/runner/channel.h; names are those of KernelMetrics where it has the figure.
_COUNTERS = (
    "blocks",
    "global_load_sectors",
    "global_load_requests",
    "global_store_sectors",
    "global_store_requests",
    "l2_load_sectors",
    "shared_load_wavefronts",
    "shared_store_wavefronts",
    "shared_load_requests",
    "shared_store_requests",
    "bank_conflicts",
    "atomics",
    "atomic_sectors",
    "atomic_conflicts",
    "shared_atomics",
    "barriers",
    "shuffles",
    "warps",
    "dependent_loads",
    "truncated",
    "global_lines",
)
_NOT_SCALED = frozenset(["blocks", "l2_load_sectors", "truncated"])
_SECTOR_BYTES = 32
_L2_BYTES = 50 << 20
# Of the traffic that outgrows L2, the part that is really fetched again: blocks that run together share tiles.
_REFETCHED = 0.3

Traffic = Mapping[int, Sequence[float]]
"""By buffer: sectors loaded, distinct ones, sectors stored, distinct ones."""


def kernel_metrics(
    launch: Launch,
    library: Path,
    counters: Sequence[float],
    traffic: Traffic,
    buffer_bytes: Sequence[int],
    executions: Mapping[int, int],
) -> KernelMetrics:
    """Scale one launch's counters from the traced blocks to all of its blocks."""
    raw = dict(zip(_COUNTERS, counters, strict=True))
    blocks = launch.grid[0] * launch.grid[1] * launch.grid[2]
    scale = blocks / max(raw["blocks"], 1.0)
    mix = _launch_mix(library, executions)
    read, written, stored = _dram_sectors(traffic, buffer_bytes, scale)
    requests = sum(raw[k] for k in _COUNTERS if k.endswith("requests")) + raw["atomics"] / 32
    synchronisations = raw["barriers"] * raw["warps"] / max(raw["blocks"], 1.0) + raw["shuffles"]
    arithmetic = mix.fma + mix.fp32 + mix.fp64 + mix.integer + mix.special + mix.control
    return KernelMetrics(
        entry=launch.entry,
        blocks=blocks,
        threads_per_block=launch.block[0] * launch.block[1] * launch.block[2],
        sampled_blocks=int(raw["blocks"]),
        l2_sectors=raw["l2_load_sectors"] * scale + stored,
        dram_read_bytes=read * _SECTOR_BYTES,
        dram_write_bytes=written * _SECTOR_BYTES,
        instructions=(arithmetic + requests + synchronisations) * scale,
        fma_instructions=mix.fma * scale,
        fp32_instructions=mix.fp32 * scale,
        fp64_instructions=mix.fp64 * scale,
        int_instructions=mix.integer * scale,
        special_instructions=mix.special * scale,
        truncated=raw["truncated"] > 0,
        **{name: raw[name] * scale for name in _COUNTERS if name not in _NOT_SCALED},
    )


def _launch_mix(library: Path, executions: Mapping[int, int]) -> InstructionMix:
    mixes = block_mixes(library)
    total = InstructionMix()
    for address, threads in executions.items():
        if address in mixes:
            total.add(mixes[address], threads / 32)
    return total


def _dram_sectors(traffic: Traffic, buffer_bytes: Sequence[int], scale: float) -> tuple[float, float, float]:
    """Sectors read from DRAM, written to it, and stored to L2, for the whole grid.

    A buffer's footprint cannot outgrow the buffer: what samples load in common (weights, a shared tile) is counted
    once, the rest as often as it is really new.
    """
    read = written = stored = reloaded = footprint = 0.0
    for buffer, (load_total, load_distinct, store_total, store_distinct) in traffic.items():
        limit = -(-buffer_bytes[buffer] // _SECTOR_BYTES)
        loads = min(load_distinct * scale, limit)
        read += loads
        written += min(store_distinct * scale, limit)
        stored += store_total * scale
        footprint += loads
        reloaded += max(load_total * scale - loads, 0.0)
    missing = max(0.0, 1.0 - _L2_BYTES / max(footprint * _SECTOR_BYTES, 1.0))
    return read + reloaded * missing * _REFETCHED, written, stored
