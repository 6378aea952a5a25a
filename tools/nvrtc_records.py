"""What goes into a compile and what comes out. Records only: a source NVRTC refuses is data, never an exception."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["error", "warning"]
RejectReason = Literal["source", "timeout", "crash"]


@dataclass(frozen=True)
class CompileRequest:
    """One translation unit for one architecture; every field takes part in the cache key."""

    source: str
    """CUDA C++ as the agent wrote it."""
    arch: str
    """Real architecture such as `sm_80`, `sm_90a` or `sm_100`."""
    defines: tuple[tuple[str, str], ...] = ()
    """Macros set before the source's first line that is not an #include, so they cannot break a header."""
    entries: tuple[str, ...] = ()
    """`extern "C"` kernel names that the cubin must contain."""
    fast_math: bool = False
    fmad: bool = True
    """Contract a*b+c into one rounding; False costs speed and buys bitwise comparability."""
    max_registers: int | None = None
    """Cap on registers per thread; None leaves it to ptxas."""


@dataclass(frozen=True)
class KernelResources:
    """What one kernel needs of a streaming multiprocessor; bytes are per thread for spills and stack."""

    entry: str
    registers: int
    """Registers per thread."""
    static_shared_bytes: int
    """Static shared memory per block."""
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    constant_bytes: int
    """Constant banks: the kernel's own parameters plus the module's __constant__ data."""


@dataclass(frozen=True)
class Diagnostic:
    """One finding of the compiler or of ptxas, placed in the agent's own source."""

    severity: Severity
    line: int | None
    """1-based line of the agent's source; None where the compiler names no line of it."""
    message: str
    excerpt: str = ""
    """Numbered source lines around `line`, with a caret where the compiler gave a column."""


@dataclass(frozen=True)
class Compiled:
    """A cubin and what ptxas said about it."""

    cubin: bytes = field(repr=False)
    resources: Mapping[str, KernelResources]
    """By kernel name; templates instantiated as kernels appear under their mangled name."""
    warnings: tuple[Diagnostic, ...]
    log: str = field(repr=False)
    cached: bool
    seconds: float
    """Wall seconds this call took, whether it compiled or read the cache."""


@dataclass(frozen=True)
class CompileRejected:
    """The source does not compile, took too long, or brought the compiler down."""

    diagnostics: tuple[Diagnostic, ...]
    log: str = field(repr=False)
    reason: RejectReason = "source"
    cached: bool = False
    seconds: float = 0.0
