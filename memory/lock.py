"""Locks between processes: one process works on a run, one at a time writes to the archive's folder.

Not here: locks inside SQLite or between threads of one store. Invariant: the kernel frees a lock when its holder
dies, so that no lock file ever has to be deleted by hand. Covers: processes of one machine. Does not cover: network
file systems without POSIX locks.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import ClassVar
from urllib.parse import quote

from memory.disk import is_full, telling_full
from memory.errors import StoreError

_FLOCK = struct.Struct("@hhqqi4x")
"""`struct flock` of 64-bit Linux: type, whence, start, length, pid."""


class RunLock:
    """The right to work on a run, held by one process; a context manager.

    A POSIX record lock: unlike flock it is not inherited by forked workers, which would otherwise keep the run
    locked after the holder's death. Such locks do not exclude within a process, so a table of held paths does.
    """

    _held: ClassVar[dict[Path, int]] = {}
    """Paths held, with the pid that took each: a forked child sees its parent's and holds none of them."""
    _guard: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, store_path: Path, run_id: str) -> None:
        self._run_id = run_id
        folder = store_path.parent.resolve()
        self._path = folder / f"{store_path.name}-locks" / f"{quote(run_id, safe='')}.lock"
        self._descriptor: int | None = None

    def __enter__(self) -> RunLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def acquire(self) -> None:
        """Take the lock at once. Raises StoreError that names the process which holds it."""
        with self._guard:
            if self._held.get(self._path) == os.getpid():
                raise self._refusal(f"this process (pid {os.getpid()})")
            with telling_full(self._path):
                self._descriptor = self._locked_file()
            self._held[self._path] = os.getpid()

    def release(self) -> None:
        """Give the lock back; harmless where it is not held."""
        with self._guard:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None
                self._held.pop(self._path, None)

    def is_held(self) -> bool:
        """True while a process, perhaps this one, holds the lock; see `holder`."""
        return self.holder() is not None

    def holder(self) -> int | None:
        """Pid of the process, perhaps this one, that holds the lock; asking does not disturb whoever takes it.

        Raises StoreError where the lock cannot be looked at.
        """
        with self._guard:
            # First, for closing any descriptor of a file gives up a process's own record locks on it.
            if self._held.get(self._path) == os.getpid():
                return os.getpid()
            try:
                descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise self._unreachable(error) from error
            try:
                # Asked about a read lock, the kernel names who would prevent it: only a holder's write lock does.
                asked = _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
                kind, *_, pid = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
                return None if kind == fcntl.F_UNLCK else int(pid)
            finally:
                os.close(descriptor)

    def _locked_file(self) -> int:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            if is_full(error):
                raise
            raise self._unreachable(error) from error
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            started = datetime.now(UTC).isoformat(timespec="seconds")
            os.pwrite(descriptor, f"pid {os.getpid()} on {socket.gethostname()} since {started}".encode(), 0)
        except (BlockingIOError, PermissionError) as error:
            holder = os.pread(descriptor, 500, 0).decode(errors="replace")
            os.close(descriptor)
            raise self._refusal(holder or "a process that has just begun") from error
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def _unreachable(self, error: OSError) -> StoreError:
        return StoreError(f"cannot open lock {str(self._path)!r}: {error}; check the folder's permissions")

    def _refusal(self, holder: str) -> StoreError:
        return StoreError(
            f"run {self._run_id!r} is being worked on by {holder}; wait for it, stop it, or start another run"
        )


class WriterLock:
    """Serialises the writers of a folder, across threads and processes, and counts their writes.

    The count tells a reader whether anyone has written since it last looked. It rises before the write is done, so
    a reader that finds it risen has to look under the lock: it then sees the write, or its writer is dead.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.held = False
        """True inside `reading` and `writing`; for the one thread at a time that may use this object."""

    @contextmanager
    def reading(self) -> Iterator[int]:
        """Wait for the lock, hold it, and yield the number of writes so far."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self.held = True
            yield _number(os.pread(descriptor, 32, 0))
        finally:
            self.held = False
            os.close(descriptor)

    @contextmanager
    def writing(self) -> Iterator[int]:
        """Wait for the lock, hold it, count one write, and yield the number of writes with this one."""
        with self.reading() as before:
            with self._path.open("r+b", buffering=0) as file:  # no truncation: readers never see it empty
                file.write(b"%020d" % (before + 1))
            yield before + 1

    def writes(self) -> int:
        """Number of writes begun so far."""
        try:
            return _number(self._path.read_bytes())
        except FileNotFoundError:
            return 0


def _number(content: bytes) -> int:
    return int(content) if content.strip().isdigit() else 0
