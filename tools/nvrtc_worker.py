"""A warm child process that compiles, and is killed and replaced when a source hangs or crashes NVRTC.

The invariant: `compile` returns within its deadline plus the time of one kill, whatever the source does.
Covers: endless templates and constexpr loops, runaway memory, compiler crashes, a parent that dies. Does not cover:
a source that reads files (refused before, see `tools/nvrtc_source.py`) or one that exploits NVRTC itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from dataclasses import asdict, dataclass
from pathlib import Path

from memory.errors import ToolMissing, WorkerLost
from tools.nvrtc_child import FRAME_HEAD_BYTES, CompileJob, RawCompile, frame_lengths, send_frame
from tools.nvrtc_records import RejectReason
from tools.owned_folder import own_folder

_START_TIMEOUT_S = 60.0
_KEPT_VARIABLES = (
    "PATH",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "HOME",
    "LANG",
    "TMPDIR",
    "VIRTUAL_ENV",
)


@dataclass(frozen=True)
class CompileDied:
    """The child was killed at the deadline, or died by itself, over one job."""

    reason: RejectReason
    detail: str


@dataclass
class _Child:
    """One living child with its end of the socket and its scratch folder."""

    process: subprocess.Popen[bytes]
    channel: socket.socket
    folder: Path
    lock_fd: int
    owner_pid: int

    def end(self) -> int:
        """Kill, reap and clean up; returns the exit status (negative: the signal)."""
        self.channel.close()
        if self.owner_pid != os.getpid():  # a fork's copy: the original is not ours to kill
            os.close(self.lock_fd)
            return 0
        self.process.kill()
        status = self.process.wait()
        os.close(self.lock_fd)
        shutil.rmtree(self.folder, ignore_errors=True)
        return status


class CompileWorker:
    """Compiles jobs one at a time in a child; safe to call from several threads, which then queue."""

    def __init__(self, scratch: Path | None = None, *, memory_bytes: int = 6 << 30) -> None:
        """`scratch` holds precompiled headers (up to 2 GB per worker); the system's temporary folder if None."""
        default = Path(tempfile.gettempdir()) / f"warpsmith-nvrtc-{os.getuid()}"
        self._scratch = (scratch or default).absolute()  # the child has another working folder
        self._memory_bytes = memory_bytes
        self._child: _Child | None = None
        self._finalizer: weakref.finalize[[], CompileWorker] | None = None
        self._lock = threading.Lock()

    def compile(self, job: CompileJob, timeout_s: float) -> RawCompile | CompileDied:
        """Run one job. Raises: ToolMissing or WorkerLost if no child can be started."""
        with self._lock:
            child = self._living_child()
            deadline = time.monotonic() + timeout_s
            try:
                child.channel.settimeout(timeout_s)
                send_frame(child.channel, {**asdict(job), "timeout_s": timeout_s})
                head, cubin = _receive(child.channel, deadline)
            except TimeoutError:
                self._drop()
                return CompileDied("timeout", f"not finished after {timeout_s:g} s")
            except (EOFError, ConnectionError, ValueError):
                return CompileDied(*self._autopsy())
            if head["retire"]:
                self._drop()
            return RawCompile(cubin if head["ok"] is True else None, str(head["log"]))

    def close(self) -> None:
        """End the child; a later compile starts another."""
        with self._lock:
            self._drop()

    def __enter__(self) -> CompileWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _living_child(self) -> _Child:
        child = self._child
        if child and child.owner_pid == os.getpid() and child.process.poll() is None:
            return child
        self._drop()
        child = _start(self._scratch, self._memory_bytes)
        self._child = child
        self._finalizer = weakref.finalize(self, child.end)
        return child

    def _drop(self) -> int | None:
        self._child = None
        finalizer, self._finalizer = self._finalizer, None
        ended = finalizer() if finalizer else None
        return ended if isinstance(ended, int) else None

    def _autopsy(self) -> tuple[RejectReason, str]:
        """Why the child closed its socket, from its exit status and the tail of its stderr."""
        child = self._child
        if child is None:
            return "crash", "the compile process is gone"
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.process.wait(1.0)
        said = (child.folder / "stderr.txt").read_text(errors="replace")[-400:].strip()
        status = self._drop() or 0
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return "crash", f"the compiler process died ({how}){': ' + said if said else ''}"


def _start(scratch: Path, memory_bytes: int) -> _Child:
    """Start a child and wait until it has loaded NVRTC."""
    folder, lock_fd = own_folder(scratch, "worker")
    ours, theirs = socket.socketpair()
    environ = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    environ["PYTHONPATH"] = os.pathsep.join(str(Path(p).absolute()) for p in sys.path)
    arguments = [str(theirs.fileno()), str(folder), str(memory_bytes)]
    with theirs, (folder / "stderr.txt").open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tools.nvrtc_child", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            pass_fds=(theirs.fileno(),),
            cwd=folder,
            env=environ,
        )
    child = _Child(process, ours, folder, lock_fd, os.getpid())
    try:
        head, _ = _receive(ours, time.monotonic() + _START_TIMEOUT_S)
    except (TimeoutError, EOFError, ConnectionError, ValueError) as error:
        said = (folder / "stderr.txt").read_text(errors="replace")[-800:].strip()
        child.end()
        raise WorkerLost(f"the NVRTC compile process did not start ({error!r}): {said}") from error
    if head.get("ready") is not True:
        child.end()
        remedy = "pip install cuda-bindings cuda-core nvidia-cuda-nvrtc"
        raise ToolMissing(f"NVRTC cannot be used: {head.get('why')}; {remedy}")
    return child


def _receive(channel: socket.socket, deadline: float) -> tuple[dict[str, object], bytes]:
    """One frame. Raises: TimeoutError at the deadline, EOFError or ValueError where the child broke off."""
    length, body_length = frame_lengths(_read(channel, FRAME_HEAD_BYTES, deadline))
    head = json.loads(_read(channel, length, deadline))
    if not isinstance(head, dict):
        raise ValueError("not a frame")
    return head, _read(channel, body_length, deadline)


def _read(channel: socket.socket, count: int, deadline: float) -> bytes:
    received = bytearray()
    while len(received) < count:
        channel.settimeout(max(1e-3, deadline - time.monotonic()))
        part = channel.recv(min(1 << 20, count - len(received)))
        if not part:
            raise EOFError("the compile process closed its socket")
        received += part
    return bytes(received)
