"""The chosen hardware counters: what each is called, what it means, and what they say of one kernel. Pure.

Here: the table and its aggregation over launches. Not here: running the profiler (tools.nsight), naming a bottleneck
(tools.profiling).
Names hold for compute capability 8.0 to 10.0; a chip or version that lacks one loses that counter alone. Names of
alternatives stand in one row, the first that exists is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tools.nsight_csv import LaunchRow
from tools.nsight_records import KernelCounters

Unit = Literal["second", "hertz", "byte", "percent", "count", "ratio"]
_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
_THREADS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"


@dataclass(frozen=True)
class Counter:
    """One counter. Counts, bytes and times add up over launches; percentages and ratios are averaged by time."""

    field: str
    """Field of KernelCounters; `stalls.x` and `instructions.x` are entries of those mappings."""
    metrics: tuple[str, ...]
    """Nsight Compute's names for it, best first."""
    unit: Unit
    meaning: str

    @property
    def adds_up(self) -> bool:
        """True where a kernel's launches are summed."""
        return self.unit in ("second", "byte", "count")


_PEAK = "avg.pct_of_peak_sustained_elapsed"
_PLAIN = (
    Counter("seconds", ("gpu__time_duration.sum",), "second", "Time on the device, with cold caches"),
    Counter("sm_hertz", ("sm__cycles_elapsed.avg.per_second",), "hertz", "Clock of the multiprocessors meanwhile"),
    Counter("dram_read_bytes", ("dram__bytes_read.sum", "dram__bytes_op_read.sum"), "byte", "Read from device memory"),
    Counter("dram_write_bytes", ("dram__bytes_write.sum", "dram__bytes_op_write.sum"), "byte",
            "Written to device memory"),
    Counter("dram_peak", (f"dram__throughput.{_PEAK}", f"gpu__dram_throughput.{_PEAK}"), "percent",
            "Device memory's busiest part, of its peak; a copy reaches about 90 %"),
    Counter("l2_peak", (f"lts__throughput.{_PEAK}",), "percent", "L2 cache's busiest part, of its peak"),
    Counter("l1_peak", ("l1tex__throughput.avg.pct_of_peak_sustained_active",), "percent",
            "L1 cache and shared memory's busiest part, of its peak"),
    Counter("sm_peak", (f"sm__throughput.{_PEAK}",), "percent", "The multiprocessors' busiest pipe, of its peak"),
    Counter("l2_hit_rate", ("lts__t_sector_hit_rate.pct",), "percent", "32-byte sectors found in L2"),
    Counter("l1_hit_rate", ("l1tex__t_sector_hit_rate.pct",), "percent", "32-byte sectors found in L1"),
    Counter("load_requests", ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",), "count", "Warp-wide global loads"),
    Counter("load_sectors", ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",), "count", "Sectors that they touch"),
    Counter("store_requests", ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",), "count", "Warp-wide global stores"),
    Counter("store_sectors", ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",), "count", "Sectors that they touch"),
    Counter("load_bytes_per_sector", ("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio",), "ratio",
            "Bytes used of each 32-byte sector loaded"),
    Counter("bulk_load_bytes", ("l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum",), "byte",
            "Loaded by bulk copies, which the load counters above do not see"),
    Counter("bank_conflicts", ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",), "count",
            "Extra cycles of shared-memory accesses; some come from arbitration, not from the addresses"),
    Counter("shared_wavefronts", ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",), "count",
            "Cycles of shared-memory accesses, conflicts included"),
    Counter("occupancy_achieved", ("sm__warps_active.avg.pct_of_peak_sustained_active",), "percent",
            "Warps resident on average, of the most an SM holds"),
    Counter("occupancy_theoretical", ("sm__maximum_warps_per_active_cycle_pct",), "percent",
            "The same as registers, shared memory and block size allow"),
    Counter("waves", ("launch__waves_per_multiprocessor",), "ratio", "How often the grid fills the GPU"),
    Counter("issue_active", ("smsp__issue_active.avg.pct_of_peak_sustained_active",), "percent",
            "Cycles in which a scheduler issued"),
    Counter("tensor_active", (f"sm__pipe_tensor_cycles_active.{_PEAK}",), "percent",
            "Cycles in which tensor cores worked"),
    Counter("instructions.all", ("smsp__inst_executed.sum",), "count", "Warp instructions"),
)  # fmt: skip
_STALLS = {
    "long_scoreboard": "a load from global, local or texture memory",
    "short_scoreboard": "shared memory or a special function",
    "barrier": "other warps at a barrier",
    "membar": "a memory fence",
    "lg_throttle": "a full queue of global and local accesses",
    "mio_throttle": "a full queue of shared-memory and special instructions",
    "tex_throttle": "a full texture queue",
    "math_pipe_throttle": "a busy arithmetic pipe",
    "wait": "a fixed latency",
    "gmma": "a warp-group matrix product",
    "imc_miss": "a constant not in its cache",
    "no_instruction": "an instruction fetch",
    "branch_resolving": "a branch target",
    "dispatch_stall": "the dispatcher",
    "drain": "stores to finish at the end",
    "sleeping": "a sleep of its own",
    "misc": "something else",
    "not_selected": "its turn: another warp was issued",
    "selected": "nothing: it was issued",
}
"""Reasons of Nsight Compute's warp state, as what a warp waits for."""
_THREAD_OPERATIONS = {
    "fadd": "fp32 additions",
    "fmul": "fp32 products",
    "ffma": "fp32 multiply-adds",
    "dadd": "fp64 additions",
    "dmul": "fp64 products",
    "dfma": "fp64 multiply-adds",
    "hadd": "fp16 additions, pairs as one",
    "hmul": "fp16 products, pairs as one",
    "hfma": "fp16 multiply-adds, pairs as one",
    "integer": "integer operations",
    "memory": "loads, stores and atomics",
    "control": "branches and the like",
    "conversion": "conversions between types",
    "bit": "bit operations",
    "inter_thread_communication": "shuffles, votes and barriers",
}
_TENSOR_OPERATIONS = {
    "hmma": "tensor-core products of fp16, bf16 or tf32",
    "gmma": "warp-group tensor-core products",
    "imma": "integer tensor-core products",
    "dmma": "fp64 tensor-core products",
}
COUNTERS: tuple[Counter, ...] = (
    *_PLAIN,
    *(
        Counter(
            f"stalls.{reason}",
            (_STALL.format(reason),),
            "ratio",
            f"Warps that wait for {what}, for each issue",
        )
        for reason, what in _STALLS.items()
    ),
    *(
        Counter(f"instructions.{name}", (_THREADS.format(name),), "count", f"Thread-wide {what}")
        for name, what in _THREAD_OPERATIONS.items()
    ),
    *(
        Counter(
            f"instructions.{name}",
            (f"sm__inst_executed_pipe_tensor_op_{name}.sum",),
            "count",
            f"Warp-wide {what}",
        )
        for name, what in _TENSOR_OPERATIONS.items()
    ),
)


def chosen_metrics(unknown: Iterable[str] = ()) -> tuple[str, ...]:
    """What to ask for: of each counter the first name that is not `unknown`."""
    refused = frozenset(unknown)
    found = (next((m for m in counter.metrics if m not in refused), None) for counter in COUNTERS)
    return tuple(metric for metric in found if metric is not None)


def stall_meaning(reason: str) -> str:
    """What a warp in that state waits for."""
    return _STALLS.get(reason, reason.replace("_", " "))


def count_kernels(rows: Sequence[LaunchRow], launches: Mapping[str, int]) -> tuple[KernelCounters, ...]:
    """One record a kernel, in the order of first launches.

    launches: of one forward, by entry. Where fewer were profiled, what adds up is scaled to all of them.
    """
    by_kernel: dict[str, list[LaunchRow]] = {}
    for row in rows:
        by_kernel.setdefault(row.kernel, []).append(row)
    return tuple(
        _count(name, found, max(launches.get(name, 0), len(found))) for name, found in by_kernel.items()
    )


def _count(name: str, rows: Sequence[LaunchRow], launches: int) -> KernelCounters:
    plain: dict[str, float] = {}
    mappings: dict[str, dict[str, float]] = {"stalls": {}, "instructions": {}}
    for counter in COUNTERS:
        value = _value(counter, rows)
        if value is None:
            continue
        if counter.adds_up:
            value *= launches / len(rows)
        group, dot, member = counter.field.partition(".")
        if dot:
            mappings[group][member] = value
        else:
            plain[counter.field] = value / 100 if counter.unit == "percent" else value
    return KernelCounters.model_validate({"name": name, "launches": launches, **plain, **mappings})


def _value(counter: Counter, rows: Sequence[LaunchRow]) -> float | None:
    """Over a kernel's launches: the sum, or the mean weighted by time."""
    pairs = [(_weight(row), found) for row in rows if (found := _of(counter, row)) is not None]
    if not pairs:
        return None
    if counter.adds_up:
        return sum(value for _, value in pairs) * len(rows) / len(pairs)
    total = sum(weight for weight, _ in pairs)
    if not total:
        return sum(value for _, value in pairs) / len(pairs)
    return sum(weight * value for weight, value in pairs) / total


def _of(counter: Counter, row: LaunchRow) -> float | None:
    return next((row.values[metric] for metric in counter.metrics if metric in row.values), None)


def _weight(row: LaunchRow) -> float:
    return row.values.get("gpu__time_duration.sum", 0.0)
