"""What a hardware profiler says of a program, or why it says nothing. Pure.

Here: the records. Not here: which counters fill them and what each means (tools.nsight_counters).
Invariant: a number that was not counted is None, never zero.
"""

from __future__ import annotations

from typing import Literal

from memory.records import Record

PRODUCTIVE = frozenset(("selected", "not_selected"))
"""States in which a warp could issue: no stall."""

AbsenceReason = Literal[
    "no_gpu", "no_tool", "no_permission", "no_driver_support", "busy", "no_kernels", "timed_out", "failed"
]


class KernelCounters(Record):
    """What was counted of one kernel in one forward, all its launches together. None: not counted on this chip."""

    name: str
    launches: int
    seconds: float | None = None
    sm_hertz: float | None = None
    dram_read_bytes: float | None = None
    dram_write_bytes: float | None = None
    dram_peak: float | None = None
    """This and the other shares: 0 to 1. The table COUNTERS says what each field means."""
    l2_peak: float | None = None
    l1_peak: float | None = None
    sm_peak: float | None = None
    l2_hit_rate: float | None = None
    l1_hit_rate: float | None = None
    load_requests: float | None = None
    load_sectors: float | None = None
    store_requests: float | None = None
    store_sectors: float | None = None
    load_bytes_per_sector: float | None = None
    bulk_load_bytes: float | None = None
    bank_conflicts: float | None = None
    shared_wavefronts: float | None = None
    occupancy_achieved: float | None = None
    occupancy_theoretical: float | None = None
    waves: float | None = None
    issue_active: float | None = None
    tensor_active: float | None = None
    stalls: dict[str, float] = {}
    """Warps in each state for each issued instruction, by reason."""
    instructions: dict[str, float] = {}
    """`all` and the tensor-core products: warp instructions; the others: operations of single threads."""

    @property
    def fields_counted(self) -> frozenset[str]:
        """Fields of the table that have a value."""
        plain = {name for name in type(self).model_fields if getattr(self, name) is not None}
        stalls = {f"stalls.{name}" for name in self.stalls}
        return frozenset(plain | stalls | {f"instructions.{name}" for name in self.instructions})

    @property
    def us(self) -> float | None:
        """Device time of its launches together."""
        return None if self.seconds is None else self.seconds * 1e6

    @property
    def dram_bytes(self) -> float | None:
        """Read and written."""
        if self.dram_read_bytes is None or self.dram_write_bytes is None:
            return None
        return self.dram_read_bytes + self.dram_write_bytes

    @property
    def load_sectors_per_request(self) -> float | None:
        """Ideal: 4 for 4-byte, 16 for 16-byte accesses per lane; 32 where every lane has a sector of its own."""
        return _ratio(self.load_sectors, self.load_requests)

    @property
    def store_sectors_per_request(self) -> float | None:
        """The same for stores."""
        return _ratio(self.store_sectors, self.store_requests)

    @property
    def fp32_flops(self) -> float:
        """Outside tensor cores; a multiply-add counts 2."""
        return self._operations("fadd", "fmul") + 2 * self._operations("ffma")

    @property
    def fp64_flops(self) -> float:
        """Outside tensor cores; a multiply-add counts 2."""
        return self._operations("dadd", "dmul") + 2 * self._operations("dfma")

    @property
    def worst_stall(self) -> tuple[str, float] | None:
        """What warps wait for most, and its share of the time that warps spend resident."""
        total = sum(self.stalls.values())
        waits = {reason: value for reason, value in self.stalls.items() if reason not in PRODUCTIVE}
        if not total or not any(waits.values()):
            return None
        reason = max(waits, key=lambda name: waits[name])
        return reason, waits[reason] / total

    @property
    def mix(self) -> dict[str, float]:
        """Share of each kind of thread operation among those counted."""
        kinds = {
            "fp32": self._operations("fadd", "fmul", "ffma"),
            "fp64": self._operations("dadd", "dmul", "dfma"),
            "fp16": self._operations("hadd", "hmul", "hfma"),
            **{
                name: self._operations(name) for name in ("integer", "memory", "control", "conversion", "bit")
            },
            "exchange": self._operations("inter_thread_communication"),
        }
        total = sum(kinds.values())
        return {name: count / total for name, count in kinds.items() if count} if total else {}

    def _operations(self, *names: str) -> float:
        return sum(self.instructions.get(name, 0.0) for name in names)


class CountersAbsent(Record):
    """Why there are no counters."""

    reason: AbsenceReason
    message: str
    """What is missing and what is lost by it."""


class Counted(Record):
    """What the profiler counted in one forward."""

    device: str
    kernels: tuple[KernelCounters, ...]
    """The Program's own by their entry names; kernels of library calls by the library's."""
    missing: tuple[str, ...] = ()
    """Fields of KernelCounters that this chip or version does not offer."""
    seconds: float
    """Wall time that it took."""

    def kernel(self, entry: str) -> KernelCounters | None:
        """The counters of a kernel; None where it was not profiled."""
        return next((kernel for kernel in self.kernels if kernel.name == entry), None)


def _ratio(over: float | None, under: float | None) -> float | None:
    return over / under if over is not None and under else None
