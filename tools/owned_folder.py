"""Scratch folders that belong to a process, and are swept away by the next one once it is gone."""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from pathlib import Path


def own_folder(parent: Path, kind: str) -> tuple[Path, int]:
    """A new folder `kind-…` and the descriptor of the lock that says its owner lives. Sweeps those without one.

    Raises: OSError where nothing can be written to `parent`.
    """
    parent.mkdir(parents=True, exist_ok=True)
    _sweep(parent, kind)
    name = uuid.uuid4().hex
    fresh, folder = parent / f"new-{name}", parent / f"{kind}-{name}"
    fresh.mkdir()
    lock_fd = os.open(fresh / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
    fcntl.flock(lock_fd, fcntl.LOCK_EX)
    fresh.rename(folder)  # only now, locked, may another process' sweep see it
    return folder, lock_fd


def _sweep(parent: Path, kind: str) -> None:
    """Remove the folders whose process was killed: nobody holds their lock any more."""
    for folder in parent.glob(f"{kind}-*"):
        try:
            fd = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:  # being made or being removed this instant
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            continue
        finally:
            os.close(fd)
