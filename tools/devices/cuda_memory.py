"""Device memory of one plan: guarded, poisoned storage for its tensors, and uploads that stay for the next candidate.

Every tensor lies between two guard zones. Before a forward the whole storage, zones included, holds one poison byte;
whatever a program should not have touched is found changed afterwards.
Covers: writes outside a tensor within the zones, writes to inputs and state, reads of what was never written (as NaN,
or as a difference between two poisons). Does not cover: reads out of bounds, writes beyond the zones that hit
another allocation (they fault, or show as a changed tensor), races that happen not to change a result.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import torch

from memory.records import TensorSpec
from tools.arrays import Array, array_from, numpy_dtype, torch_dtype
from tools.binding import BoundPlan

GUARD_BYTES = 4096
"""Size of each zone; a multiple of every alignment that vector loads need."""


class UploadCache:
    """Host arrays as bytes on the device, so that trials are uploaded once for all candidates.

    Keyed by the array object, which is kept alive as long as its upload: content must not change meanwhile.
    """

    def __init__(self, device: torch.device, max_bytes: int) -> None:
        self._device = device
        self._max_bytes = max_bytes
        self._held: OrderedDict[tuple[int, TensorSpec], tuple[Array, torch.Tensor]] = OrderedDict()
        self._bytes = 0

    def get(self, array: Array | torch.Tensor, spec: TensorSpec) -> torch.Tensor:
        """The values' bytes (1-d uint8) laid out with the spec's strides, gaps zero. A tensor of this device is not
        copied where it is laid out so already."""
        if isinstance(array, torch.Tensor):
            return _tensor_bytes(array.to(self._device), spec)
        key = (id(array), spec)
        found = self._held.get(key)
        if found is not None:
            self._held.move_to_end(key)
            return found[1]
        uploaded = _host_bytes(array, spec).to(self._device)
        if uploaded.numel() <= self._max_bytes:
            self._held[key] = (array, uploaded)
            self._bytes += uploaded.numel()
            while self._bytes > self._max_bytes:
                _, (_, dropped) = self._held.popitem(last=False)
                self._bytes -= dropped.numel()
        return uploaded

    def clear(self) -> None:
        """Give all of it back."""
        self._held.clear()
        self._bytes = 0


@dataclass(frozen=True)
class _Storage:
    """One tensor's memory with its zones."""

    raw: torch.Tensor
    content: torch.Tensor
    """The bytes between the zones."""
    tensor: torch.Tensor
    """The content with the spec's dtype, shape and strides."""


class CudaMemory:
    """Storage for a plan's inputs, state and buffers."""

    def __init__(self, plan: BoundPlan, buffers: Iterable[str], device: torch.device) -> None:
        """buffers: names that need storage of their own; the others are whatever a library call returns."""
        self._plan = plan
        self._given = {name: _allocate(spec, device) for name, spec in plan.given.items()}
        self._buffers = {name: _allocate(plan.buffers[name].spec, device) for name in buffers}

    def fill(self, given: Mapping[str, torch.Tensor], poison: int) -> None:
        """Poison everything, copy the uploads of inputs and state in, zero the buffers declared so."""
        for name, storage in self._given.items():
            storage.raw.fill_(poison)
            storage.content.copy_(given[name])
        for name, storage in self._buffers.items():
            storage.raw.fill_(poison)
            if self._plan.buffers[name].zero:
                storage.content.zero_()

    def tensors(self) -> dict[str, torch.Tensor]:
        """A fresh mapping of names to tensors; a forward rebinds names of library results in it."""
        return {name: storage.tensor for name, storage in (*self._given.items(), *self._buffers.items())}

    def poison(self, names: Iterable[str], byte: int) -> None:
        """Fill the named buffers that have storage with one byte."""
        for name in names:
            if name in self._buffers:
                self._buffers[name].content.fill_(byte)

    def changed(self, given: Mapping[str, torch.Tensor]) -> list[str]:
        """Inputs and state whose bytes are no longer what was filled in."""
        return [
            name for name, storage in self._given.items() if not _same_bytes(storage.content, given[name])
        ]

    def breached(self, poison: int) -> list[str]:
        """One clause for every zone that was written into."""
        clauses: list[str] = []
        for name, storage in (*self._given.items(), *self._buffers.items()):
            end = storage.raw.numel() - GUARD_BYTES
            for where, zone in (("before", storage.raw[:GUARD_BYTES]), ("after", storage.raw[end:])):
                count = int((zone != poison).sum())
                if count:
                    clauses.append(f"{count:,} bytes {where} {name!r}")
        return clauses


def to_host(tensor: torch.Tensor) -> Array:
    """A copy in host memory, row-major."""
    return array_from(tensor.contiguous().cpu())


def storage_of(spec: TensorSpec, upload: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor of its own with an upload's content."""
    storage = _allocate(spec, device)
    storage.content.copy_(upload)
    return storage.tensor


def extent_bytes(spec: TensorSpec) -> int:
    """Bytes from the first to the last element; at least one element, so that even an empty tensor has an address."""
    if spec.elements == 0:
        return spec.dtype.bytes
    last = sum((size - 1) * stride for size, stride in zip(spec.shape, spec.strides, strict=True))
    return (last + 1) * spec.dtype.bytes


def _allocate(spec: TensorSpec, device: torch.device) -> _Storage:
    extent = extent_bytes(spec)
    raw = torch.empty(extent + 2 * GUARD_BYTES + -extent % 512, dtype=torch.uint8, device=device)
    # The far zone begins right behind the last byte: the padding lies behind it.
    raw = raw[: extent + 2 * GUARD_BYTES]
    content = raw[GUARD_BYTES : GUARD_BYTES + extent]
    tensor = content.view(torch_dtype(spec.dtype)).as_strided(spec.shape, spec.strides)
    return _Storage(raw, content, tensor)


def _tensor_bytes(tensor: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    if spec.is_contiguous and spec.elements:
        return tensor.contiguous().reshape(-1).view(torch.uint8)
    flat = torch.zeros(extent_bytes(spec), dtype=torch.uint8, device=tensor.device)
    if spec.elements:
        # Along broadcast dimensions every element is the first: written once, not from many places.
        sizes = (1 if stride == 0 else size for size, stride in zip(spec.shape, spec.strides, strict=True))
        first = tensor[tuple(slice(0, size) for size in sizes)]
        flat.view(tensor.dtype).as_strided(first.shape, spec.strides).copy_(first)
    return flat


def _host_bytes(array: Array, spec: TensorSpec) -> torch.Tensor:
    if spec.is_contiguous and spec.elements:
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    else:
        dtype = numpy_dtype(spec.dtype)
        flat = np.zeros(extent_bytes(spec), np.uint8)
        if spec.elements:
            strides = tuple(stride * dtype.itemsize for stride in spec.strides)
            laid_out = np.lib.stride_tricks.as_strided(flat.view(dtype), spec.shape, strides)
            laid_out[...] = array
    with warnings.catch_warnings():
        # A memory-mapped trial is read-only, and it is only read here.
        warnings.filterwarnings("ignore", message=".*not writable.*", category=UserWarning)
        return torch.from_numpy(flat)


def _same_bytes(mine: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Equal bit for bit; as integers, so that NaN equals itself."""
    if mine.numel() % 8 == 0 and mine.storage_offset() % 8 == 0 and theirs.storage_offset() % 8 == 0:
        return torch.equal(mine.view(torch.int64), theirs.view(torch.int64))
    return torch.equal(mine, theirs)
