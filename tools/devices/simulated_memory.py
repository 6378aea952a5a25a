"""Memory of one simulated forward: the arena that kernels see, and torch views of it for library steps."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import TracebackType

import numpy as np
import torch

from memory.records import DType, TensorSpec
from tools.arrays import Array, array_from, numpy_dtype, tensor_from
from tools.binding import BoundLibrary, BoundPlan
from tools.devices.library import call
from tools.simulator.arena import Arena

POISON = 0xFF
"""Byte that fills every buffer before a forward: NaN in every floating type, -1 in every signed integer."""
POISONS = (POISON, 0x5A)
"""Bytes that forwards alternate between: a program may not depend on what it finds."""
MAX_FILLED_BYTES = 8 << 30
"""Memory that one forward may fill; beyond it the program does not fit this machine's simulator."""

_CPU = torch.device("cpu")


class SimulatedMemory:
    """Tensors of one forward. Buffers that a library call may return as views live outside the arena."""

    def __init__(self, plan: BoundPlan) -> None:
        self._plan = plan
        self.arena = Arena()
        self._views: dict[str, torch.Tensor] = {}
        for name, spec in plan.given.items():
            self.arena.allocate(name, _extent_bytes(spec), writable=False)
        for name, buffer in plan.buffers.items():
            if buffer.contiguous:
                self.arena.allocate(name, _extent_bytes(buffer.spec))

    def __enter__(self) -> SimulatedMemory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._views.clear()
        self.arena.close()

    def fill(self, given: Mapping[str, Array], poison: int = POISON) -> None:
        """Copy inputs and state in, poison every buffer, zero those declared so."""
        for name in self._plan.given:
            self._array(name)[...] = given[name]
        for name, buffer in self._plan.buffers.items():
            if buffer.contiguous:
                raw = self.arena.view(name, np.dtype(np.uint8), (_extent_bytes(buffer.spec),))
                raw[...] = 0 if buffer.zero else poison

    def run_library(self, step: BoundLibrary) -> None:
        """Call one ATen operation on this memory. Raises LibraryFault."""
        for name, tensor in call(step, self._tensor, _CPU, self._plan).items():
            if self._plan.buffers[name].contiguous:
                self._array(name)[...] = array_from(tensor)
            else:
                self._views[name] = tensor

    def snapshot(self, names: Collection[str]) -> dict[str, Array]:
        """Copies of contiguous buffers, to be compared later."""
        return {name: self._array(name).copy() for name in names if self._plan.buffers[name].contiguous}

    def altered(self, snapshot: Mapping[str, Array]) -> list[str]:
        """Names of buffers that no longer hold what they held at the snapshot."""
        return [name for name, array in snapshot.items() if not _same_bytes(self._array(name), array)]

    def changed(self, given: Mapping[str, Array]) -> list[str]:
        """Names of inputs and state whose content is no longer what was filled in."""
        return [name for name in self._plan.given if not _same_bytes(self._array(name), given[name])]

    def results(self) -> dict[str, Array]:
        """Copies of the outputs and updated state."""
        return {name: self._result(name) for name in self._plan.results}

    def _result(self, name: str) -> Array:
        if name in self._views:
            return array_from(self._views[name].contiguous()).copy()
        return self._array(name).copy()

    def _tensor(self, name: str) -> torch.Tensor:
        view = self._views.get(name)
        return tensor_from(self._array(name), self._plan.spec(name).dtype) if view is None else view

    def _array(self, name: str) -> Array:
        spec = self._plan.spec(name)
        dtype = numpy_dtype(spec.dtype)
        flat = self.arena.view(name, dtype, (_extent_bytes(spec) // dtype.itemsize,))
        if spec.is_contiguous:
            return flat[: spec.elements].reshape(spec.shape)
        strides = tuple(stride * dtype.itemsize for stride in spec.strides)
        return np.lib.stride_tricks.as_strided(flat, spec.shape, strides)


def filled_bytes(plan: BoundPlan) -> int:
    """Bytes that one forward's inputs, state and buffers take."""
    specs = [*plan.given.values(), *(b.spec for b in plan.buffers.values() if b.contiguous)]
    return sum(_extent_bytes(spec) for spec in specs)


def _extent_bytes(spec: TensorSpec) -> int:
    """Bytes from the first to the last element; at least one element, so that even an empty tensor has an address."""
    if spec.elements == 0:
        return spec.dtype.bytes
    last = sum((size - 1) * stride for size, stride in zip(spec.shape, spec.strides, strict=True))
    return (last + 1) * spec.dtype.bytes


def _same_bytes(mine: Array, theirs: Array) -> bool:
    """Equal bit for bit (NaN equals itself)."""
    unsigned = np.dtype(f"u{mine.dtype.itemsize}")
    return bool(np.array_equal(mine.view(unsigned), np.asarray(theirs, order="C").view(unsigned)))


def invalid_booleans(results: Mapping[str, Array], specs: Mapping[str, TensorSpec]) -> list[str]:
    """Names of boolean results with bytes other than 0 and 1: unwritten or wrongly typed."""
    return [
        name
        for name, array in results.items()
        if specs[name].dtype is DType.BOOL and bool((array.view(np.uint8) > 1).any())
    ]
