"""Runs launches in a confined process and returns what it reports.

Each run is one process group: a supervisor of ours and its workers, killed whole on the deadline. The job goes in
as lines of text on stdin; the report comes back on a pipe that workers cannot write. See `native/runner/sandbox.h`
for what the confinement covers and what it does not.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from enum import StrEnum

from tools.simulator.arena import Arena
from tools.simulator.compiler import HostCompiler, HostLibrary
from tools.simulator.decode import RunContext, decode_report
from tools.simulator.launch import BufferArg, Launch
from tools.simulator.report import RunStatus, SimReport

_MAX_LAUNCHES = 4096
_MAX_BUFFERS = 900
_MAX_WORKERS = 16
# What the supervisor may take beyond the deadline before the whole group is killed from here.
_GRACE_S = 2.0
_MAX_REPORT_BYTES = 64 << 20


class Mode(StrEnum):
    """How much of a run is observed.

    PLAIN: nothing, at full speed; guard pages stop overruns of buffers, barriers and shuffles are still checked.
    CHECK: every block. Covers bounds of buffers, shared and local arrays, races and uninitialised reads in shared
    memory, barriers, warp operations. Does not cover races between blocks, uninitialised global reads, and an index
    that lands inside the same buffer or another one's middle.
    SAMPLE: a few blocks of the full grid, for metrics only.
    """

    PLAIN = "plain"
    CHECK = "check"
    SAMPLE = "sample"


class Simulator:
    """Executes compiled programs on the CPU. Stateless between runs; safe to use from several threads."""

    def __init__(
        self,
        compiler: HostCompiler,
        *,
        workers: int = 1,
        timeout_s: float = 20.0,
        memory_limit_bytes: int = 4 << 30,
    ) -> None:
        if not 1 <= workers <= _MAX_WORKERS:
            raise ValueError(f"workers={workers!r}: use 1 to {_MAX_WORKERS}")
        self.compiler = compiler
        self._workers = workers
        self._timeout_s = timeout_s
        self._memory_limit_bytes = memory_limit_bytes

    def run(
        self,
        library: HostLibrary,
        launches: Sequence[Launch],
        arena: Arena,
        *,
        mode: Mode,
        sample_blocks: int = 16,
    ) -> SimReport:
        """Execute `launches` in order in one process.

        CHECK and SAMPLE need a library compiled with instrumented=True, PLAIN one without (ValueError otherwise).
        A SAMPLE run leaves outputs incomplete. A crash, a hang or a bad launch is a status, not an exception.
        """
        if library.instrumented != (mode is not Mode.PLAIN):
            raise ValueError(
                f"mode {mode} and a library compiled with instrumented={library.instrumented} do not fit"
            )
        started = time.monotonic()
        problem = _problem(library, launches, arena)
        if problem:
            return SimReport(RunStatus.BAD_LAUNCH, (), (), problem, "", time.monotonic() - started)
        job = self._job(library, launches, arena, mode, sample_blocks)
        text = self._execute(library, job, arena)
        wall_s = time.monotonic() - started
        context = RunContext(library, tuple(launches), arena, mode is Mode.PLAIN, self._timeout_s, wall_s)
        return decode_report(text, context)

    def _job(
        self, library: HostLibrary, launches: Sequence[Launch], arena: Arena, mode: Mode, sample_blocks: int
    ) -> str:
        # Writable device variables live in each worker's own copy of the library, so one worker must run them.
        # A sample is one worker's too: distinct sectors are counted within a process.
        alone = library.has_device_variables or mode is Mode.SAMPLE
        workers = 1 if alone else self._workers
        lines = [
            f"mode {mode.value}",
            f"workers {workers}",
            f"arena_fd {arena.fd}",
            f"timeout_ms {int(self._timeout_s * 1000)}",
            f"memory_limit {self._memory_limit_bytes}",
            f"sample_blocks {max(1, sample_blocks)}",
            f"library {library.path}",
        ]
        sections = arena.sections()
        for s in sections:
            lines.append(
                f"buffer {s.section_offset} {s.section_bytes} {s.data_offset} {s.nbytes} {int(s.writable)}"
            )
        lines += [f"shared {v.offset} {v.nbytes}" for v in library.shared]
        places = {s.name: i for i, s in enumerate(sections)}
        lines += [_launch_line(launch, library, places) for launch in launches]
        return "\n".join([*lines, "end", ""])

    def _execute(self, library: HostLibrary, job: str, arena: Arena) -> str:
        """The runner's report, or an empty string where it had to be killed."""
        receive, send = os.pipe()
        try:
            process = subprocess.Popen(
                [str(library.runner), str(send)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(send, arena.fd),
                start_new_session=True,
                env={},
                cwd="/",
            )
        except BaseException:
            os.close(receive)
            raise
        finally:
            os.close(send)
        try:
            return _converse(process, job, receive, time.monotonic() + self._timeout_s + _GRACE_S)
        finally:
            os.close(receive)
            _end_group(process)


def _converse(process: subprocess.Popen[bytes], job: str, receive: int, deadline: float) -> str:
    stdin = process.stdin
    assert stdin is not None
    try:
        stdin.write(job.encode())
        stdin.close()
    except BrokenPipeError:
        return ""
    os.set_blocking(receive, False)
    received = bytearray()
    poll = select.poll()
    poll.register(receive, select.POLLIN)
    while time.monotonic() < deadline and len(received) < _MAX_REPORT_BYTES:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            break
        part = os.read(receive, 1 << 20)
        if not part:
            break
        received += part
    return received.decode("ascii", errors="replace")


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill whatever of the run is left and reap it; the group is the run's own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _launch_line(launch: Launch, library: HostLibrary, places: dict[str, int]) -> str:
    parts = [
        "launch",
        library.entries.index(launch.entry),
        *launch.grid,
        *launch.block,
        launch.shared_bytes,
        len(launch.args),
    ]
    for arg in launch.args:
        parts += ["b", places[arg.name]] if isinstance(arg, BufferArg) else ["s", arg.encode().hex()]
    return " ".join(str(p) for p in parts)


def _problem(library: HostLibrary, launches: Sequence[Launch], arena: Arena) -> str:
    """What makes these launches impossible to even describe, or an empty string."""
    names = {s.name for s in arena.sections()}
    if len(launches) > _MAX_LAUNCHES or len(names) > _MAX_BUFFERS:
        limits = f"at most {_MAX_LAUNCHES} and {_MAX_BUFFERS} are supported"
        return f"{len(launches)} launches over {len(names)} buffers; {limits}"
    for number, launch in enumerate(launches):
        where = f"launch {number} ({launch.entry})"
        if launch.entry not in library.entries:
            return f"{where}: no such kernel; the library has {', '.join(library.entries)}"
        if min(*launch.grid, *launch.block) < 1 or max(*launch.grid, *launch.block) > 2**31 - 1:
            return f"{where}: grid {launch.grid} and block {launch.block} must be between 1 and 2^31 - 1"
        if launch.shared_bytes < 0:
            return f"{where}: shared_bytes is {launch.shared_bytes}"
        for arg in launch.args:
            if isinstance(arg, BufferArg) and arg.name not in names:
                return f"{where}: no buffer {arg.name!r} in the arena"
            if not isinstance(arg, BufferArg):
                try:
                    arg.encode()
                except ValueError as error:
                    return f"{where}: {error}"
    return ""
