"""What a compiled library contains, read with binutils: variables, undefined symbols, code that runs at load time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tools.simulator.toolchain import run_command


@dataclass(frozen=True)
class SharedVariable:
    """A static `__shared__` variable: offset from the load address, size in bytes."""

    name: str
    offset: int
    nbytes: int


@dataclass(frozen=True)
class Symbols:
    """The parts of a symbol table that the simulator acts on."""

    shared: tuple[SharedVariable, ...]
    has_device_variables: bool
    """True where the library has writable globals: workers would each see their own."""
    undefined: frozenset[str]
    impostors: frozenset[str]
    """Functions that the library defines under names of the simulator's own hooks."""
    runs_at_load: bool
    """True where constructors or indirect functions would run while the library is being loaded."""


_RESERVED = re.compile(r"__tsan_|__ubsan_|__sanitizer_|sim_(?!(?:entry|arity|sizes_ptr)_\d+$)")


def read_symbols(library: Path) -> Symbols:
    """Read a library's symbol table with nm."""
    result = run_command(["nm", "-S", str(library)], timeout_s=20, confined=False)
    shared: list[SharedVariable] = []
    undefined: set[str] = set()
    impostors: set[str] = set()
    device_variables = runs_at_load = False
    for line in result.stdout.splitlines():
        fields = line.split()
        if fields[0] in ("U", "w", "v"):
            undefined.add(fields[1].split("@")[0])
        elif len(fields) == 4 and fields[2] in "bBdDuVv":
            if fields[3].startswith("_ZZ"):
                shared.append(SharedVariable(_plain_name(fields[3]), int(fields[0], 16), int(fields[1], 16)))
            elif not fields[3].startswith("sim_"):
                device_variables = True
        if fields[-2] not in "Uwv" and _RESERVED.match(fields[-1]):
            impostors.add(fields[-1])
        runs_at_load |= fields[-2] in ("i", "I")
    sections = run_command(["readelf", "-SW", str(library)], timeout_s=20, confined=False)
    runs_at_load |= bool(
        re.search(r"\.(?:init_array|ctors|init|preinit_array|fini_array)\b", sections.stdout)
    )
    shared.sort(key=lambda v: v.offset)
    return Symbols(tuple(shared), device_variables, frozenset(undefined), frozenset(impostors), runs_at_load)


def exported(library: Path) -> frozenset[str]:
    """Names that an executable or library offers to others."""
    result = run_command(["nm", "-D", "--defined-only", str(library)], timeout_s=20, confined=False)
    return frozenset(line.split()[-1].split("@")[0] for line in result.stdout.splitlines() if line)


def _plain_name(symbol: str) -> str:
    """The variable's name in `_ZZ<function>E<length><name>`."""
    for match in re.finditer(r"E(\d+)", symbol):
        start, length = match.end(), int(match[1])
        rest = symbol[start + length :]
        if start + length <= len(symbol) and re.fullmatch(r"(?:_\d+_?|__\d+_)?(?:\.\w+)*", rest):
            return symbol[start : start + length]
    return symbol
