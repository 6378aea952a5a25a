"""What a run of the simulator says: status, findings and metrics, as frozen records."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RunStatus(StrEnum):
    """How a run ended. OK may carry warnings; FINDINGS carries at least one error."""

    OK = "ok"
    FINDINGS = "findings"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    BAD_LAUNCH = "bad_launch"


class FindingKind(StrEnum):
    """The bug classes that the simulator recognises."""

    OUT_OF_BOUNDS = "out_of_bounds"
    RACE = "race"
    UNINITIALISED_SHARED = "uninitialised_shared"
    DIVERGENT_BARRIER = "divergent_barrier"
    SHUFFLE_FAULT = "shuffle_fault"
    DEADLOCK = "deadlock"
    READ_ONLY_WRITE = "read_only_write"
    ASSERTION = "assertion"
    MISALIGNED = "misaligned"
    STACK_OVERFLOW = "stack_overflow"


class Severity(StrEnum):
    """ERROR: the kernel is wrong. WARNING: works on today's hardware, outside CUDA's rules."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Finding:
    """One bug, at one place."""

    kind: FindingKind
    severity: Severity
    kernel: str
    line: int | None
    """Line in the user's source, from 1."""
    buffer: str | None
    """Arena buffer, shared variable, or `dynamic shared memory`."""
    index: int | None
    """Element index into the buffer; negative before its start."""
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    message: str


@dataclass(frozen=True)
class KernelMetrics:
    """Totals of one launch, scaled from `sampled_blocks` to the whole grid.

    A request is one warp-wide access; a sector is 32 bytes; a wavefront is one pass of shared memory. Instruction
    counts are warp instructions estimated from the host's machine code: the weakest figures here.
    """

    entry: str
    blocks: int
    threads_per_block: int
    sampled_blocks: int
    global_load_sectors: float
    global_load_requests: float
    global_store_sectors: float
    global_store_requests: float
    global_lines: float
    """128-byte lines touched, summed over requests: the cycles that L1's tag stage takes."""
    l2_sectors: float
    dram_read_bytes: float
    dram_write_bytes: float
    shared_load_wavefronts: float
    shared_store_wavefronts: float
    shared_load_requests: float
    shared_store_requests: float
    bank_conflicts: float
    """Extra wavefronts beyond what the accesses' bytes need."""
    atomics: float
    atomic_sectors: float
    atomic_conflicts: float
    """Lanes of one warp atomic that hit an address another lane of it hits."""
    shared_atomics: float
    barriers: float
    shuffles: float
    warps: float
    dependent_loads: float
    """Load rounds a warp waits for, one after another, summed over warps."""
    instructions: float
    fma_instructions: float
    fp32_instructions: float
    fp64_instructions: float
    int_instructions: float
    special_instructions: float
    truncated: bool
    """True where a warp's trace outgrew its buffer; figures then miss its tail."""


@dataclass(frozen=True)
class SimReport:
    """Everything one run says. `metrics` is empty in plain mode and where the run did not end well."""

    status: RunStatus
    findings: tuple[Finding, ...]
    metrics: tuple[KernelMetrics, ...]
    message: str
    """One line for people; empty where the status is OK."""
    printed: str
    """What kernels printed, at most 16 KB."""
    wall_s: float
