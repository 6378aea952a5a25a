"""The device port: what the verifier needs of a place where programs run. A program cannot tell which it is on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import torch

from memory.records import BaselineTime, Diagnostic, DType, Graph, Status, StepProfile
from tools.arrays import Array
from tools.binding import BoundPlan
from tools.gpus import GpuSpec
from tools.timing import Interval


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
class Ran:
    """The same with results that lie on the device: valid until the program's next forward."""

    results: Mapping[str, torch.Tensor]
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


class DeviceLost(Exception):
    """The device can run nothing more in this process (an illegal access poisons a CUDA context).

    `fault` is the candidate's; whoever owns the process answers with it and ends.
    """

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.diagnostics[0].message)
        self.fault = fault


class Loaded(Protocol):
    """A plan compiled for a device."""

    def execute(self, given: Mapping[str, Array], *, sanitize: bool) -> Executed | Fault:
        """One forward on host arrays of inputs and state; with `sanitize`, its memory accesses are checked.

        Raises: DeviceLost.
        """
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


Given = Mapping[str, Array] | Mapping[str, torch.Tensor]
"""Values by name: arrays of the host, or tensors on the device itself."""


@dataclass(frozen=True)
class Contest:
    """What a plan is timed against and on: the module's graph as eager PyTorch runs it, over several input sets."""

    graph: Graph
    givens: tuple[Given, ...]
    """Inputs and state by graph name, one mapping a set. Neither arrays nor tensors may change as long as they live."""


@dataclass(frozen=True)
class Raced:
    """A plan timed in turn with eager PyTorch in one process."""

    measured: Measured
    eager: BaselineTime
    speedup: Interval
    """Eager's median over the plan's, rounds taken as pairs."""
    results: tuple[Given, ...]
    """What the last timed call on each input set left, by `BoundPlan.results`: to be judged again."""


CompileMode = Literal["default", "max-autotune-no-cudagraphs", "reduce-overhead"]
"""A mode of torch.compile."""


@dataclass(frozen=True)
class Baselines:
    """Times of the baselines that could be measured, and why the others could not, by name."""

    times: tuple[BaselineTime, ...]
    absent: Mapping[str, str]
    out_of_memory: bool = False
    """The problem does not fit the device."""
    untrusted: str | None = None
    """Why trials cannot be drawn on the device; None where they can, or where nobody asked."""


@runtime_checkable
class DrawingDevice(Protocol):
    """A device that draws and judges trials itself, at shapes whose arrays no file should hold."""

    @property
    def place(self) -> torch.device:
        """Where its tensors lie."""
        ...

    def upload(self, array: Array, dtype: DType) -> torch.Tensor:
        """A host array as a dense tensor there, kept for the next candidate. The array must not change meanwhile."""
        ...

    def release(self) -> None:
        """Give back the memory of what is kept for the next candidate: it will be another problem's."""
        ...

    def run_tensors(self, loaded: Loaded, given: Given, *, sanitize: bool) -> Ran | Fault:
        """One checked forward of a plan that this device loaded, as `Loaded.execute` with its results left there.

        Raises: DeviceLost.
        """
        ...


@runtime_checkable
class RacingDevice(Protocol):
    """A device that executes in real time, so that a plan and its baseline can be timed in turn."""

    def race(self, plan: BoundPlan, contest: Contest) -> Raced | Fault:
        """Time `plan` and eager PyTorch interleaved. Raises: DeviceLost; WarpsmithError where eager cannot run."""
        ...

    def baselines(self, contest: Contest, modes: tuple[CompileMode, ...]) -> Baselines:
        """Time eager PyTorch and torch.compile's modes. Raises: DeviceLost."""
        ...
