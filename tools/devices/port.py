"""The device port: what the verifier needs of a place where programs run. A program cannot tell which it is on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from memory.records import Diagnostic, Status, StepProfile
from tools.arrays import Array
from tools.binding import BoundPlan
from tools.gpus import GpuSpec


@dataclass(frozen=True)
class Fault:
    """Why a program could not be compiled or run: data for its author, not an exception."""

    status: Status
    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True)
class Executed:
    """One forward's results, by name: `BoundPlan.results`. Arrays own their memory."""

    results: Mapping[str, Array]
    warnings: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True)
class Measured:
    """Time of one forward and where it goes."""

    median_us: float
    low_us: float
    high_us: float
    rounds: int | None
    """Timed repetitions; None where the time is modelled."""
    steps: tuple[StepProfile, ...]


class Loaded(Protocol):
    """A plan compiled for a device."""

    def execute(self, given: Mapping[str, Array], *, sanitize: bool) -> Executed | Fault:
        """One forward on host arrays of inputs and state; with `sanitize`, every memory access is checked."""
        ...


class Device(Protocol):
    """A place where bound plans are compiled, run and timed."""

    @property
    def name(self) -> str:
        """Such as `simulator:h200`; stored with every evaluation and time."""
        ...

    @property
    def gpu(self) -> GpuSpec:
        """Limits and rates of the GPU that this device is or stands for."""
        ...

    @property
    def time_source(self) -> Literal["measured", "modelled"]:
        """Whether `measure` times real executions or models them."""
        ...

    def load(self, plan: BoundPlan) -> Loaded | Fault:
        """Compile `plan`. Raises ToolMissing where a compiler or driver is absent."""
        ...

    def measure(self, plan: BoundPlan) -> Measured | Fault:
        """Time of one forward of `plan` at its own shapes, in µs, and its split over the steps."""
        ...
