"""Memory that kernels and Python share: one sealed-off memfd, one section a buffer.

A buffer ends where its last page ends (to 16 bytes, so that vector accesses stay aligned): in the runner the next
page is unmapped, so even an uninstrumented overrun stops. Sections are sparse: untouched pages cost nothing.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

_PAGE = 4096
_ALIGNMENT = 16
MAX_BUFFER_BYTES = 40 << 30
_CANARY = 0xA5


@dataclass
class Section:
    """Where one buffer lies. `element_bytes` is that of its last view, for element indices in findings."""

    name: str
    nbytes: int
    writable: bool
    section_offset: int
    section_bytes: int
    data_offset: int
    mapping: mmap.mmap
    element_bytes: int | None = None


class Arena:
    """Owns the buffers of one evaluation; a context manager. Not for use by several threads at once."""

    def __init__(self) -> None:
        self._fd = os.memfd_create("warpsmith-arena", os.MFD_CLOEXEC)
        self._bytes = 0
        self._sections: dict[str, Section] = {}

    def __enter__(self) -> Arena:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def fd(self) -> int:
        """The memfd that a runner maps; valid until `close`."""
        if self._fd < 0:
            raise ValueError("the arena is closed; allocate and run inside its `with` block")
        return self._fd

    def sections(self) -> tuple[Section, ...]:
        """All buffers, in order of allocation."""
        return tuple(self._sections.values())

    def allocate(self, name: str, nbytes: int, *, writable: bool = True) -> None:
        """Add a zeroed buffer. Kernels that write one with writable=False end with READ_ONLY_WRITE."""
        if name in self._sections:
            raise ValueError(f"buffer {name!r} exists already; names are unique in an arena")
        if not 0 <= nbytes <= MAX_BUFFER_BYTES:
            raise ValueError(f"buffer {name!r} of {nbytes} bytes: use 0 to {MAX_BUFFER_BYTES}")
        used = -(-max(nbytes, 1) // _ALIGNMENT) * _ALIGNMENT
        section_bytes = -(-used // _PAGE) * _PAGE
        offset = self._bytes
        os.ftruncate(self.fd, offset + section_bytes)
        self._bytes += section_bytes
        mapping = mmap.mmap(self.fd, section_bytes, mmap.MAP_SHARED, offset=offset)
        section = Section(name, nbytes, writable, offset, section_bytes, section_bytes - used, mapping)
        self._sections[name] = section
        for start, stop in self._margins(section):
            mapping[start:stop] = bytes([_CANARY]) * (stop - start)

    def view(self, name: str, dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> NDArray[np.generic]:
        """An array over the buffer's own memory; writes are seen by kernels and the other way round."""
        section = self._section(name)
        dtype = np.dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        if count * dtype.itemsize > section.nbytes:
            raise ValueError(
                f"view of {shape} {dtype} needs {count * dtype.itemsize} bytes, {name!r} has {section.nbytes}"
            )
        section.element_bytes = dtype.itemsize
        flat = np.frombuffer(section.mapping, dtype=dtype, count=count, offset=section.data_offset)
        return flat.reshape(shape)

    def overwritten_margin(self, name: str) -> int | None:
        """Byte offset from the buffer's start of the first changed byte beside it, or None; then repairs it."""
        section = self._section(name)
        found: int | None = None
        for start, stop in self._margins(section):
            margin = section.mapping[start:stop]
            if margin.count(_CANARY) == stop - start:
                continue
            changed = [i for i, byte in enumerate(margin) if byte != _CANARY]
            nearest = changed[-1] if start == 0 and section.data_offset else changed[0]
            found = start + nearest - section.data_offset if found is None else found
            section.mapping[start:stop] = bytes([_CANARY]) * (stop - start)
        return found

    def close(self) -> None:
        """Release the memory. Views that are still referenced keep their own section alive."""
        for section in self._sections.values():
            try:
                section.mapping.close()
            except BufferError:
                # A view is still alive: its mapping goes when the view does.
                continue
        self._sections.clear()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _section(self, name: str) -> Section:
        if name not in self._sections:
            raise ValueError(f"no buffer {name!r} in the arena; it has {', '.join(self._sections) or 'none'}")
        return self._sections[name]

    @staticmethod
    def _margins(section: Section) -> list[tuple[int, int]]:
        ends = [(0, section.data_offset), (section.data_offset + section.nbytes, section.section_bytes)]
        return [(start, stop) for start, stop in ends if stop > start]
