"""What to run: one kernel launch as data."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal

CType = Literal[
    "bool",
    "char",
    "signed char",
    "unsigned char",
    "short",
    "unsigned short",
    "int",
    "unsigned",
    "unsigned int",
    "long",
    "unsigned long",
    "long long",
    "unsigned long long",
    "size_t",
    "float",
    "double",
    "half",
    "bfloat16",
]

_PACK: dict[str, str] = {
    "bool": "?",
    "char": "b",
    "signed char": "b",
    "unsigned char": "B",
    "short": "h",
    "unsigned short": "H",
    "int": "i",
    "unsigned": "I",
    "unsigned int": "I",
    "long": "q",
    "unsigned long": "Q",
    "long long": "q",
    "unsigned long long": "Q",
    "size_t": "Q",
    "float": "f",
    "double": "d",
    "half": "e",
}


@dataclass(frozen=True)
class BufferArg:
    """The address of an arena buffer's first element."""

    name: str


@dataclass(frozen=True)
class ScalarArg:
    """A value passed by copy, of the C type that the kernel's parameter has."""

    ctype: CType
    value: int | float | bool

    def encode(self) -> bytes:
        """The value's bytes, little-endian. Raises ValueError where it does not fit the type."""
        if self.ctype == "bfloat16":
            bits: int = struct.unpack("<I", struct.pack("<f", self.value))[0]
            return struct.pack("<H", ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16) & 0xFFFF)
        if self.ctype not in _PACK:
            raise ValueError(f"unknown scalar type {self.ctype!r}; use one of {', '.join(_PACK)}")
        try:
            if self.ctype in ("float", "double", "half"):
                return struct.pack("<" + _PACK[self.ctype], self.value)
            return struct.pack("<" + _PACK[self.ctype], int(self.value))
        except (struct.error, OverflowError) as error:
            raise ValueError(f"{self.value!r} does not fit {self.ctype}: {error}") from error


KernelArg = BufferArg | ScalarArg


@dataclass(frozen=True)
class Launch:
    """One launch: grid and block are (x, y, z); `shared_bytes` is dynamic shared memory."""

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    args: tuple[KernelArg, ...]
