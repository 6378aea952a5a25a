"""CUDA C++ text to a shared library of the host, cached by content.

Refused here: inline PTX, unknown headers, symbols that a device does not have (system, fork, open), and code that
would run while the library is being loaded.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from memory.disk import disk_full, no_room
from memory.errors import ToolMissing
from tools.simulator.elf import SharedVariable, Symbols, exported, read_symbols
from tools.simulator.source import FILE_NAME, Diagnostic, RefusedSource, excerpt_of, prepare
from tools.simulator.toolchain import Toolchain, run_command

_MESSAGE = re.compile(
    rf"^(?:.*/)?(?P<file>{re.escape(FILE_NAME)}|entries):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$",
    re.M,
)
_ANY_MESSAGE = re.compile(r"(?:fatal )?error: (.*)|undefined reference to (.*)")
_NAME = re.compile(r"[A-Za-z_]\w*")
_ENTRY = re.compile(r"[A-Za-z_][\w:<>, ]*")
_LIBC = frozenset(
    ["memcpy", "memset", "memmove", "memcmp", "strlen", "__cxa_finalize", "_GLOBAL_OFFSET_TABLE_"]
)


class HostCompileError(Exception):
    """The source does not compile for the simulator; a fact about the candidate."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__(
            "; ".join(f"line {d.line}: {d.message}" if d.line else d.message for d in diagnostics)
        )
        self.diagnostics = diagnostics


@dataclass(frozen=True)
class HostLibrary:
    """A compiled program for the runner."""

    path: Path
    entries: tuple[str, ...]
    instrumented: bool
    shared: tuple[SharedVariable, ...]
    has_device_variables: bool
    runner: Path


class HostCompiler:
    """Compiles programs with the host's g++ behind the shim. Safe to use from several threads and processes.

    `check_symbols=False` lets undefined names reach the loader: only tests of the sandbox want that.
    """

    def __init__(
        self, cache_dir: Path, *, cxx: str = "g++", timeout_s: float = 60.0, check_symbols: bool = True
    ) -> None:
        # g++ runs in a folder of its own.
        self._toolchain = Toolchain(cache_dir.resolve(), cxx, timeout_s)
        self._timeout_s = timeout_s
        self._check_symbols = check_symbols

    def compile(
        self, source: str, defines: Mapping[str, str], entries: Sequence[str], *, instrumented: bool
    ) -> HostLibrary:
        """Compile `entries` of `source`; the result is cached by content.

        Raises: HostCompileError for bad source, ToolMissing without a usable g++.
        """
        _check_names(defines, entries)
        try:
            text = prepare(source, defines, entries)
        except RefusedSource as refused:
            raise HostCompileError(refused.diagnostics) from refused
        home = self._toolchain.home
        key = hashlib.sha256(f"{instrumented}\0{self._check_symbols}\0{text}".encode()).hexdigest()[:24]
        place = home / "libraries" / key
        if not (place / "library.json").exists():
            self._build(place, source, text, instrumented)
        record = json.loads((place / "library.json").read_text())
        return HostLibrary(
            path=place / "kernels.so",
            entries=tuple(entries),
            instrumented=instrumented,
            shared=tuple(SharedVariable(**v) for v in record["shared"]),
            has_device_variables=record["has_device_variables"],
            runner=self._toolchain.runner,
        )

    def _build(self, place: Path, source: str, text: str, instrumented: bool) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
            draft = Path(scratch) / "draft"
            draft.mkdir()
            # The compiler reads a file of the name that debug information should show.
            (draft / FILE_NAME).write_text(text)
            unit, library = draft / "unit.o", draft / "kernels.so"
            flags = self._toolchain.flags(instrumented=instrumented)
            header = self._toolchain.header(instrumented=instrumented)
            self._tool(
                draft, source, *flags, "-include", str(header), "-x", "c++", "-c", FILE_NAME, "-o", unit.name
            )
            if instrumented:
                self._drop_constructor(unit)
            # Linked without -fsanitize and without start files: the runner provides every hook.
            link = ("-shared", "-nostdlib", "-Wl,-z,noexecstack", "-Wl,--build-id=none", "-Wl,-z,now")
            self._tool(draft, source, *link, unit.name, "-o", library.name)
            symbols = read_symbols(library)
            if self._check_symbols:
                self._refuse_symbols(symbols)
            unit.unlink()
            record = {
                "shared": [asdict(v) for v in symbols.shared],
                "has_device_variables": symbols.has_device_variables,
            }
            (draft / "library.json").write_text(json.dumps(record))
            try:
                draft.rename(place)
            except OSError:
                # Another process finished the same content first; either copy will do.
                if not (place / "library.json").exists():
                    raise

    def _drop_constructor(self, unit: Path) -> None:
        """GCC's instrumentation adds a constructor that starts a run-time library which is not there."""
        names = (".init_array.00099", ".rela.init_array.00099")
        options = [f"--remove-section={name}" for name in names]
        result = run_command(["objcopy", *options, str(unit)], timeout_s=20, confined=False)
        if result.returncode != 0:
            _require_room(unit.parent)
            raise ToolMissing(f"objcopy failed: {result.stderr[:200]}; apt-get install binutils")

    def _tool(self, directory: Path, source: str, *arguments: str) -> None:
        command = [self._toolchain.compiler, *arguments]
        result = run_command(command, timeout_s=self._timeout_s, confined=True, directory=directory)
        if result.timed_out:
            raise HostCompileError(
                (Diagnostic(None, f"the host compiler took longer than {self._timeout_s:g} s", ""),)
            )
        if result.returncode != 0:
            _require_room(directory)
            raise HostCompileError(_diagnostics(source, result.stderr))

    def _refuse_symbols(self, symbols: Symbols) -> None:
        unknown = sorted(symbols.undefined - self._offered)
        if unknown:
            names = ", ".join(unknown[:5])
            raise HostCompileError((Diagnostic(None, f"not available in device code: {names}", ""),))
        if symbols.impostors:
            # A hook of the program's own would switch the checks off.
            names = ", ".join(sorted(symbols.impostors)[:5])
            raise HostCompileError((Diagnostic(None, f"names reserved for the simulator: {names}", ""),))
        if symbols.runs_at_load:
            text = "variables with constructors and indirect functions are not available in device code"
            raise HostCompileError((Diagnostic(None, text, ""),))

    @cached_property
    def _offered(self) -> frozenset[str]:
        """Symbols that device code may use: the runner's own, and the mathematics library's."""
        maths = _mathematics_library(self._toolchain.runner)
        return (
            frozenset(
                n
                for n in exported(self._toolchain.runner)
                if n.startswith(("sim_", "__tsan_", "__ubsan_", "__sanitizer_"))
            )
            | maths
            | _LIBC
        )


def _require_room(directory: Path) -> None:
    """Raises DiskFull: a compiler without room fails like one that was given wrong code, which is no verdict."""
    for folder in (directory, Path(tempfile.gettempdir())):
        if (code := no_room(folder)) is not None:
            raise disk_full(folder, code)


def _mathematics_library(runner: Path) -> frozenset[str]:
    result = run_command([shutil.which("ldd") or "ldd", str(runner)], timeout_s=20, confined=False)
    found = re.search(r"libm\.so\S* => (\S+)", result.stdout)
    return exported(Path(found[1])) if found else frozenset()


def _check_names(defines: Mapping[str, str], entries: Sequence[str]) -> None:
    complaints = [f"define {n!r} is not a name" for n in defines if not _NAME.fullmatch(n)]
    complaints += [f"define {n!r} spans lines" for n, v in defines.items() if "\n" in v or "\r" in v]
    complaints += [f"entry {e!r} is not a kernel name" for e in entries if not _ENTRY.fullmatch(e)]
    if complaints:
        raise HostCompileError(tuple(Diagnostic(None, text, "") for text in complaints))


def _diagnostics(source: str, stderr: str) -> tuple[Diagnostic, ...]:
    found: list[Diagnostic] = []
    for match in _MESSAGE.finditer(stderr):
        line = int(match["line"]) if match["file"] == FILE_NAME else None
        found.append(Diagnostic(line, _readable(match["text"]), excerpt_of(source, line)))
    if not found:
        other = _ANY_MESSAGE.search(stderr)
        text = (other[1] or other[2]) if other else stderr.strip()[-300:] or "the host compiler was killed"
        found.append(Diagnostic(None, _readable(text), ""))
    return tuple(found[:20])


def _readable(text: str) -> str:
    text = text.replace("sim_user::", "")
    if "poisoned" in text and "asm" in text:
        return "inline PTX is not supported by the simulator"
    return text.replace("‘", "'").replace("’", "'")
