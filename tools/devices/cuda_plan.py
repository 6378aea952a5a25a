"""A plan's steps on the GPU: kernels launched on torch's current stream, library calls made in between.

Here: what one forward does. Not here: memory and its checks (tools.devices.cuda_memory), compiling, timing.
Invariant: nothing waits for the device; a failure that surfaces later is the caller's to look for, and gradients are
his to switch off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tools.binding import BoundKernel, BoundLibrary, BoundPlan, BoundScalar, BoundStep
from tools.devices.aliasing import must_own
from tools.devices.cuda_driver import Launcher, LoadedKernel, scalar
from tools.devices.library import LibraryCall

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class _Kernel:
    """One launch with everything but its pointers fixed."""

    kernel: LoadedKernel
    config: Any
    template: tuple[object, ...]
    pointers: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class _Library:
    """One library call; `own`: its results may not share memory with its arguments, `reads`."""

    call: LibraryCall
    reads: tuple[str, ...]
    own: bool


class PlanRunner:
    """Runs a plan's steps over a mapping of tensors, which library results are added to."""

    def __init__(
        self, plan: BoundPlan, kernels: Mapping[str, LoadedKernel], launcher: Launcher, device: torch.device
    ) -> None:
        self._plan = plan
        self._launcher = launcher
        everything: tuple[BoundStep, ...] = (*plan.prepare, *plan.steps)
        ready = [
            _Library(LibraryCall(step, device, plan), tuple(step.reads), own)
            if isinstance(step, BoundLibrary)
            else _ready(step, kernels[step.entry], launcher)
            for step, own in zip(everything, must_own(plan), strict=True)
        ]
        self._prepare, self._steps = ready[: len(plan.prepare)], ready[len(plan.prepare) :]
        self._launched = {a for s in everything if isinstance(s, BoundKernel) for a in s.args}
        prepared = {name for step in plan.prepare for name in touched(step)}
        self._zeroed = [n for n, b in plan.buffers.items() if b.zero and n not in prepared]

    @property
    def stored(self) -> list[str]:
        """Buffers that need storage before a forward: those that kernels touch and those that start as zeros."""
        return [n for n, b in self._plan.buffers.items() if n in self._launched or b.zero]

    @property
    def contiguous(self) -> list[str]:
        """Buffers that can have storage of their own."""
        return [n for n, b in self._plan.buffers.items() if b.contiguous or b.zero]

    def prepare(self, tensors: Tensors, *, copy: bool = False) -> None:
        """The steps that run once per set of weights. Raises LibraryFault, DriverError or torch's own errors."""
        stream = self._launcher.stream()
        for step in self._prepare:
            self._run(step, tensors, stream, copy)

    def forward(self, tensors: Tensors, *, copy: bool = False) -> None:
        """The steps of one call. copy: library results go into storage that exists already. Raises as `prepare`."""
        stream = self._launcher.stream()
        for name in self._zeroed:
            tensors[name].zero_()
        for step in self._steps:
            self._run(step, tensors, stream, copy)

    def step(self, index: int, tensors: Tensors) -> None:
        """One of the plan's steps alone, after those before it. Raises as `prepare`."""
        self._run(self._steps[index], tensors, self._launcher.stream(), False)

    def zero(self, tensors: Tensors) -> None:
        """Zero what a call begins with as zeros."""
        for name in self._zeroed:
            tensors[name].zero_()

    @property
    def zeroes(self) -> bool:
        """Whether `zero` does anything."""
        return bool(self._zeroed)

    def _run(self, step: _Kernel | _Library, tensors: Tensors, stream: Any, copy: bool) -> None:
        if isinstance(step, _Kernel):
            arguments = list(step.template)
            for position, name in step.pointers:
                arguments[position] = tensors[name].data_ptr()
            self._launcher.launch(stream, step.config, step.kernel, arguments)
            return
        for name, result in step.call.run(tensors.__getitem__).items():
            if copy and name in tensors:
                tensors[name].copy_(result)
            else:
                tensors[name] = (
                    result.clone() if step.own and _is_view(result, step.reads, tensors) else result
                )


def _is_view(result: torch.Tensor, reads: Sequence[str], tensors: Tensors) -> bool:
    """True where the result lies in an argument's memory."""
    place = result.untyped_storage().data_ptr()
    return any(tensors[name].untyped_storage().data_ptr() == place for name in reads)


def _ready(step: BoundKernel, kernel: LoadedKernel, launcher: Launcher) -> _Kernel:
    template = tuple(scalar(a.ctype, a.value) if isinstance(a, BoundScalar) else 0 for a in step.args)
    pointers = tuple((i, a) for i, a in enumerate(step.args) if isinstance(a, str))
    return _Kernel(kernel, launcher.config(step.grid, step.block, step.shared_bytes), template, pointers)


def touched(step: BoundStep) -> set[str]:
    """Tensors that a step may write: a library call's results, everything a kernel is given."""
    if isinstance(step, BoundLibrary):
        return {name for name in step.outputs if name is not None}
    return {a for a in step.args if isinstance(a, str)}
