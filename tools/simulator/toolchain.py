"""The host compiler and what is built from `native/` once per cache: the runner and two precompiled headers.

Everything is keyed by the content of `native/`, the compiler's version and the flags, so a stale cache cannot be
used; building happens in a scratch directory and is renamed into place, so a killed build leaves nothing behind.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from memory.disk import disk_full, no_room
from memory.errors import ToolMissing

NATIVE = Path(__file__).parent / "native"

PLAIN_FLAGS = (
    *("-std=gnu++17", "-O2", "-fPIC", "-g1", "-fvisibility=hidden", "-pipe", "-w", "-fmax-errors=20"),
    *("-fno-strict-aliasing", "-fno-math-errno", "-fno-trapping-math", "-fno-exceptions", "-fno-rtti"),
    *("-fno-threadsafe-statics", "-fno-stack-protector", "-fcf-protection=none", "-fno-gnu-unique"),
    *("-fno-diagnostics-show-caret", "-fno-asynchronous-unwind-tables", "-mavx2", "-mfma"),
    *("-mf16c", "-ffp-contract=fast"),
)
INSTRUMENTED_FLAGS = (
    *PLAIN_FLAGS,
    # Hooks come from GCC's sanitizer passes; the library is linked without their runtime, ours answers instead.
    *("-DSIM_INSTR", "-O3", "-fsanitize=thread,bounds", "-fsanitize-coverage=trace-pc"),
    *("--param=tsan-distinguish-volatile=1", "--param=tsan-instrument-func-entry-exit=0"),
    # One source access must stay one hook, and a hook's return address must name its line.
    *("-fno-tree-vectorize", "-fno-tree-slp-vectorize", "-fno-tree-loop-distribute-patterns"),
    *("-fno-store-merging", "-fno-optimize-sibling-calls", "-fno-tree-tail-merge", "-fno-crossjumping"),
    # Without full peeling, as nvcc does, instruction counts are 3.5 to 7 times too high.
    *("-fpeel-loops", "--param=max-completely-peel-times=128", "--param=max-completely-peeled-insns=4000"),
)
_RUNNER_FLAGS = ("-O2", "-std=c++17", "-fvisibility=hidden", "-rdynamic", "-Wall", "-Wextra")
_COMPILER_MEMORY_BYTES = 3 << 30
_COMPILER_FILE_BYTES = 256 << 20
_HEADER_BYTES = 16 << 20
"""More than a precompiled header takes."""


@dataclass(frozen=True)
class CommandResult:
    """How a build command ended. `stderr` is cut to its first 64 KB."""

    returncode: int
    stdout: str
    stderr: str
    timed_out: bool


def run_command(
    command: Sequence[str], *, timeout_s: float, confined: bool, directory: Path | None = None
) -> CommandResult:
    """Run a build tool in a process group of its own and kill the whole group when time is up.

    With `confined`, CPU time, memory and file size are limited too: templates can loop and `#include` can read.
    """

    process = subprocess.Popen(
        [*_confinement(timeout_s), *command] if confined else command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
        cwd=directory,
        env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TMPDIR": tempfile.gettempdir()},
    )
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return CommandResult(-signal.SIGKILL, "", "", timed_out=True)
    return CommandResult(process.returncode, stdout, stderr[:65536], timed_out=False)


def _confinement(timeout_s: float) -> tuple[str, ...]:
    """A shell that sets limits and becomes the command: unlike preexec_fn, safe in a program with threads."""
    limits = {
        "c": 0,
        "t": int(timeout_s) + 1,
        "v": _COMPILER_MEMORY_BYTES >> 10,
        "f": _COMPILER_FILE_BYTES >> 9,
    }
    script = "; ".join(f"ulimit -{letter} {value}" for letter, value in limits.items())
    return ("/bin/sh", "-c", f'{script}; exec "$@"', "sh")


@dataclass(frozen=True)
class Toolchain:
    """A host compiler together with the cache directory for what it builds."""

    cache_dir: Path
    cxx: str
    timeout_s: float

    @cached_property
    def compiler(self) -> str:
        """Absolute path of the compiler. Raises ToolMissing with the remedy."""
        if platform.machine() not in ("x86_64", "AMD64"):
            raise ToolMissing(
                f"the simulator runs on x86-64 Linux only; this machine is {platform.machine()!r}"
            )
        found = shutil.which(self.cxx)
        if found is None:
            raise ToolMissing(f"no C++ compiler {self.cxx!r} found; install one: apt-get install g++")
        return found

    @cached_property
    def version(self) -> str:
        """First line of `g++ --version`, part of every cache key."""
        result = run_command([self.compiler, "--version"], timeout_s=20, confined=False)
        if result.returncode != 0:
            raise ToolMissing(f"{self.compiler!r} does not run: {result.stderr[:200]!r}; apt-get install g++")
        return result.stdout.splitlines()[0]

    @cached_property
    def key(self) -> str:
        """Hash over native sources, flags and compiler."""
        digest = hashlib.sha256()
        for path in sorted(p for p in NATIVE.rglob("*") if p.is_file()):
            digest.update(str(path.relative_to(NATIVE)).encode() + b"\0" + path.read_bytes() + b"\0")
        digest.update(repr((self.version, PLAIN_FLAGS, INSTRUMENTED_FLAGS, _RUNNER_FLAGS)).encode())
        return digest.hexdigest()[:20]

    @cached_property
    def home(self) -> Path:
        """Directory of this toolchain version inside the cache; created and filled on first use."""
        home = self.cache_dir / f"simulator-{self.key}"
        if not (home / "complete").exists():
            self.cache_dir.mkdir(parents=True, exist_ok=True)
            with _locked(self.cache_dir / "simulator.lock"):
                if not (home / "complete").exists():
                    self._build(home)
        return home

    @cached_property
    def runner(self) -> Path:
        """The runner executable."""
        return self.home / "runner"

    def header(self, *, instrumented: bool) -> Path:
        """The shim to pass with -include; its precompiled form lies beside it."""
        return self.home / ("instrumented" if instrumented else "plain") / "sim.h"

    def flags(self, *, instrumented: bool) -> tuple[str, ...]:
        """Compiler flags of a mode; the precompiled header is valid for exactly these."""
        return INSTRUMENTED_FLAGS if instrumented else PLAIN_FLAGS

    def _build(self, home: Path) -> None:
        with tempfile.TemporaryDirectory(dir=self.cache_dir) as scratch:
            draft = Path(scratch) / "home"
            try:
                shutil.copytree(NATIVE, draft / "native")
            except shutil.Error:  # which does not pass on the system's own code
                self._require_room()
                raise
            sources = sorted(str(p) for p in (draft / "native" / "runner").glob("*.cpp"))
            self._tool(*_RUNNER_FLAGS, *sources, "-o", str(draft / "runner"), "-ldl", "-lm")
            for mode in ("plain", "instrumented"):
                (draft / mode).mkdir()
                shim = home / "native" / "shim" / "sim.h"
                (draft / mode / "sim.h").write_text(f'#include "{shim}"\n')
            if home.exists():
                shutil.rmtree(home)
            draft.rename(home)
        for instrumented in (False, True):
            header = home / ("instrumented" if instrumented else "plain") / "sim.h"
            flags = self.flags(instrumented=instrumented)
            self._tool(*flags, "-x", "c++-header", str(header), "-o", f"{header}.gch")
        (home / "complete").touch()

    def _require_room(self) -> None:
        """Raises DiskFull where there is no room for what is built here."""
        if (code := no_room(self.cache_dir, _HEADER_BYTES)) is not None:
            raise disk_full(self.cache_dir, code)

    def _tool(self, *arguments: str) -> None:
        result = run_command([self.compiler, *arguments], timeout_s=max(self.timeout_s, 120), confined=False)
        if result.returncode != 0:
            self._require_room()
            raise ToolMissing(f"{self.cxx} cannot build the simulator: {result.stderr[:2000]}")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds an advisory lock, so that parallel processes build one cache entry once."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
