"""Processes that run a user's code for us: spawned, limited, watched, and killed at a deadline.

Here: the parent's end of the channel. Not here: what runs inside (tools.child_loop and its handlers).
Covers: a child that prints, forks, exits, calls os._exit, raises, hangs, segfaults, fills memory, writes huge
files or answers garbage; it has its own session, so a deadline kills everything it forked. Secrets are left out
of its environment. Does not cover hostile code: the child has the user's own rights over files and network, may
leave its session with setsid, or may write to the channel itself. It runs the user's module, never a model's.
Invariant: every request ends in an answer, a Failure or a Lost; `ask` never outlives its deadline by more than
the time a kill takes.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Literal

from memory.errors import BadInput, CaptureFailed, DiskFull, WarpsmithError
from memory.records import Record

REQUEST = struct.Struct("!QI")
"""Bytes of the request, and seconds after which the child's own alarm ends it."""
REPLY = struct.Struct("!cQ")
"""Kind of the reply and its bytes."""
ANSWER, FAILURE, PROGRESS = b"A", b"F", b"P"

_ROOT = Path(__file__).resolve().parents[1]
_MAX_REPLY_BYTES = 256 << 20
_OUTPUT_BYTES = 8192
_ALARM_MARGIN_S = 15
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from tools.child_loop import main; main(sys.argv[2:])"


def default_memory_bytes() -> int:
    """Most of this machine's memory: the limit on a child's private data."""
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 0.85)


@dataclass(frozen=True)
class Limits:
    """What a child may use."""

    memory_bytes: int | None = None
    """Private data; None for most of the machine's memory."""
    file_bytes: int = 64 << 30
    """Size of any one file it writes."""
    threads: int | None = None
    """torch's CPU threads; None for torch's own choice."""
    gpu: bool = False
    """False hides the GPUs, so that code which asks for one behaves as on a machine without."""


class Ending(StrEnum):
    """How a child was lost."""

    DEADLINE = "deadline"
    SIGNAL = "signal"
    EXIT = "exit"
    GARBLED = "garbled"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class Lost:
    """The child ended without an answer."""

    ending: Ending
    detail: str
    """What happened, and during what."""
    output: str
    """Head and tail of what it printed."""


class Failure(Record):
    """The child's own account of why it has no answer."""

    kind: Literal["bad_input", "capture", "disk_full", "internal"]
    message: str


_EXIT_S = 8.0
"""What a child that closed its channel may take to end: on a busy machine an interpreter's last steps take seconds."""


class Child:
    """One process with a handler module from tools; asked one request at a time."""

    def __init__(self, handler: str, limits: Limits) -> None:
        self._channel, theirs = socket.socketpair()
        read_end, write_end = os.pipe()
        memory = limits.memory_bytes or default_memory_bytes()
        options = [handler, theirs.fileno(), memory, limits.file_bytes, limits.threads or 0]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOT, str(_ROOT), *map(str, options)],
            stdin=subprocess.DEVNULL,
            stdout=write_end,
            stderr=write_end,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
            env=_environment(limits),
        )
        os.close(write_end)
        theirs.close()
        self._output = _Output(read_end)
        self._closed = False
        self._cancelled = False

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Process id, which is also its process group's."""
        return self._process.pid

    def ask(self, request: bytes, *, deadline_s: float) -> bytes | Failure | Lost:
        """Send a request and wait for its reply; a child that is Lost has been killed and reaped."""
        stage = "starting"
        end = time.monotonic() + deadline_s
        try:
            self._channel.settimeout(deadline_s)
            self._channel.sendall(REQUEST.pack(len(request), int(deadline_s) + _ALARM_MARGIN_S) + request)
            while True:
                kind, count = REPLY.unpack(self._read(REPLY.size, end))
                if count > _MAX_REPLY_BYTES or kind not in (ANSWER, FAILURE, PROGRESS):
                    return self._lose(Ending.GARBLED, f"sent an unreadable reply while {stage}")
                body = self._read(count, end)
                if kind == PROGRESS:
                    stage = body.decode(errors="replace")
                    continue
                return body if kind == ANSWER else Failure.model_validate_json(body)
        except TimeoutError:
            return self._lose(Ending.DEADLINE, f"was still {stage} after {deadline_s:g} s")
        except (ConnectionError, EOFError):
            return self._lose(None, f"while {stage}")
        except ValueError:
            return self._lose(Ending.GARBLED, f"sent an unreadable failure while {stage}")

    def cancel(self) -> None:
        """Make the request that another thread waits for, or the next one, end as Lost: the one method for others."""
        self._cancelled = True
        # Only our end is touched: a process id may be another process's by now, and the asking thread does the killing.
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the child and everything left in its process group. May be called again."""
        if self._closed:
            return
        self._closed = True
        self._channel.close()
        self._wait_unreaped(0.2)
        self._kill()
        self._output.finish()

    def _read(self, count: int, end: float) -> bytes:
        chunks = bytearray()
        while len(chunks) < count:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._channel.settimeout(left)
            chunk = self._channel.recv(min(count - len(chunks), 1 << 20))
            if not chunk:
                raise EOFError
            chunks += chunk
        return bytes(chunks)

    def _lose(self, ending: Ending | None, detail: str) -> Lost:
        if ending is None and self._cancelled:
            ending, detail = Ending.CANCELLED, f"was cancelled {detail}"
        if ending is None and not self._wait_unreaped(_EXIT_S):
            ending, detail = Ending.GARBLED, f"closed its channel to us {detail}"
        self._closed = True
        self._channel.close()
        self._kill()
        self._output.finish()
        code = self._process.returncode
        if ending is None:
            ending = Ending.SIGNAL if code < 0 else Ending.EXIT
            detail = f"{describe_exit(code)} {detail}"
        return Lost(ending, detail, self._output.text())

    def _wait_unreaped(self, timeout_s: float) -> bool:
        """Wait for the leader's end without reaping it: until then its process group's id stays ours."""
        end = time.monotonic() + timeout_s
        while self._process.returncode is None:
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return True
            if time.monotonic() > end:
                return False
            time.sleep(0.005)
        return True

    def _kill(self) -> None:
        if self._process.returncode is None:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                self._process.kill()
            self._process.wait()


class _Output:
    """Drains a pipe on a thread and keeps its head and tail."""

    def __init__(self, read_end: int) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._thread = threading.Thread(target=self._drain, args=(read_end,), daemon=True)
        self._thread.start()

    def finish(self) -> None:
        # A process that left the session may hold the pipe open: its output is not worth waiting for.
        self._thread.join(timeout=0.5)

    def text(self) -> str:
        middle = b"\n[...]\n" if len(self._tail) >= _OUTPUT_BYTES else b""
        return bytes(self._head + middle + self._tail).decode(errors="replace").strip()

    def _drain(self, read_end: int) -> None:
        with os.fdopen(read_end, "rb", buffering=0) as stream:
            while chunk := stream.read(65536):
                room = _OUTPUT_BYTES - len(self._head)
                self._head += chunk[:room]
                self._tail = (self._tail + chunk[max(room, 0) :])[-_OUTPUT_BYTES:]


def describe_exit(code: int) -> str:
    """An exit status in words."""
    if code >= 0:
        return f"exited with status {code} (os._exit in the module?)"
    name = signal.Signals(-code).name
    meaning = {
        signal.SIGSEGV: "a crash in native code",
        signal.SIGKILL: "most likely out of memory",
        signal.SIGABRT: "an abort in native code",
        signal.SIGXFSZ: "a file grew too large",
    }.get(signal.Signals(-code))
    return f"was killed by {name}" + (f" ({meaning})" if meaning else "")


def error_of(outcome: Failure | Lost, subject: str) -> WarpsmithError:
    """The exception that an outcome deserves; `subject` names the file or problem."""
    if isinstance(outcome, Failure):
        kinds = {
            "bad_input": BadInput,
            "capture": CaptureFailed,
            "disk_full": DiskFull,
            "internal": WarpsmithError,
        }
        return kinds[outcome.kind](outcome.message)
    last = outcome.output.splitlines()[-1:] if outcome.ending is not Ending.DEADLINE else []
    said = f"; it last printed: {last[0][:300]}" if last else ""
    remedy = (
        "; raise WARPSMITH_CAPTURE_DEADLINE_S or make it faster" if outcome.ending is Ending.DEADLINE else ""
    )
    return CaptureFailed(f"{subject}: the process running it {outcome.detail}{remedy}{said}")


def _environment(limits: Limits) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not _SECRET.search(name)}
    # A torch.compile in the user's own file would compile during capture, and make the oracle its own subject.
    kept["TORCHDYNAMO_DISABLE"] = "1"
    if not limits.gpu:
        kept["CUDA_VISIBLE_DEVICES"] = ""
    if limits.threads:
        kept["OMP_NUM_THREADS"] = str(limits.threads)
    return kept
