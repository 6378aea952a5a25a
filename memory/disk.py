"""A full disk: how one is recognised, and what is said of it.

Not here: what becomes of the run (graph.session pauses it). Covers: no space or inodes left, a quota used up, a limit
on the size of files. Does not cover: a failing disk, which is an error like any other.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memory.errors import DiskFull

REASONS = {
    errno.ENOSPC: ("the disk at {mount!r} is full ({free} free)", "make room there"),
    errno.EDQUOT: ("the disk quota at {mount!r} is used up ({free} free on the disk)", "make room there"),
    errno.EFBIG: (
        "the limit on the size of files is reached (`ulimit -f`; {free} free at {mount!r})",
        "raise it",
    ),
}
"""What the system says where a file may not grow; what we say of it, and what helps."""
PROBE_BYTES = 1 << 20
"""More than a store, an archive or a compiler writes at a time."""


def is_full(error: OSError) -> bool:
    """True where the system refused to let a file grow."""
    return error.errno in REASONS


def disk_full(path: Path, code: int = errno.ENOSPC) -> DiskFull:
    """The exception for a file that could not grow: what is full, how much is free, what could not be written."""
    place = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
    mount = next(str(p) for p in (place, *place.parents) if os.path.ismount(p))
    free = f"{shutil.disk_usage(place).free / 2**20:,.1f} MiB"
    reason, remedy = REASONS[code]
    return DiskFull(f"{reason.format(mount=mount, free=free)}: {str(path)!r} could not be written; {remedy}")


@contextmanager
def telling_full(path: Path) -> Iterator[None]:
    """DiskFull in place of the system's refusal to let the file at `path` grow; other errors pass."""
    try:
        yield
    except OSError as error:
        if error.errno is None or not is_full(error):
            raise
        raise disk_full(path, error.errno) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A draft beside `path`, to be written whole: it takes the file's place at the end, and is gone after an exception.

    A kill leaves the old file or the new one; what it leaves of a draft goes with the next attempt, since its name is
    always the same. Raises OSError, and DiskFull.
    """
    draft = path.with_name(f".{path.name}.draft")
    try:
        with telling_full(path):
            draft.unlink(missing_ok=True)
            yield draft
            draft.replace(path)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def full_of(error: OSError, otherwise: Path) -> DiskFull:
    """The exception for a refusal that names its file itself, or else for a file at `otherwise`."""
    return disk_full(Path(error.filename or otherwise), error.errno or errno.ENOSPC)


def no_room(path: Path, wanted_bytes: int = PROBE_BYTES) -> int | None:
    """Why the file at `path` could not grow, found by trying it with another as large beside it; None where it could.

    For programs and libraries that do not pass on the system's own code. path: a file, perhaps absent, or a folder.
    """
    folder = path if path.is_dir() else path.parent
    beside = (
        [] if path.is_dir() else list(folder.glob(f"{path.name}*"))
    )  # a database's log may be the larger file
    end = max((file.stat().st_size for file in beside), default=0)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            left = wanted_bytes
            while left > 0:
                written = os.pwrite(file.fileno(), bytes(min(left, PROBE_BYTES)), end)
                end, left = end + written, left - written
    except OSError as error:
        return error.errno if is_full(error) else None
    return None


def sqlite_full(error: sqlite3.Error, path: Path) -> int | None:
    """Why a database could not grow; None where that was not the error."""
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_FULL":
        return errno.ENOSPC
    # A quota and a limit on files look like a broken disk to SQLite.
    return no_room(path) if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")) else None
