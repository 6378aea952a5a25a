"""Real full disks: small file systems that exist in one process and its children, and are gone with it.

A namespace of its own lets anyone mount a tmpfs, where the system allows namespaces at all.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

ROOT = Path(__file__).parents[1]
ALONE = ["unshare", "--user", "--map-root-user", "--mount"]
T = TypeVar("T")


def among_small_disks(work: Callable[..., T], *arguments: object, timeout_s: float = 200) -> T:
    """What `work(*arguments)` returns in a process that may mount file systems. Skips the test where none may."""
    allowed = subprocess.run([*ALONE, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, text=True)
    if allowed.returncode != 0:
        pytest.skip(f"no namespace in which to mount a small disk: {allowed.stderr.strip()}")
    done = subprocess.run(
        [*ALONE, sys.executable, "-m", "tests.full_disks"], input=pickle.dumps((work, arguments)), cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, timeout=timeout_s,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    result: T = pickle.loads(done.stdout)
    return result


def mount(place: Path, kib: int) -> None:
    """A disk of so many KiB at a folder."""
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "none", str(place)], check=True)


def resize(place: Path, kib: int) -> None:
    """Make a disk larger, or as small as what is on it allows."""
    subprocess.run(["mount", "-o", f"remount,size={kib}k", str(place)], check=True)


def unmount(place: Path) -> None:
    """Take it away, with what is on it."""
    # Lazily: a process that is just ending may still stand in one of its folders.
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def free_kib(place: Path) -> int:
    """What a disk has left."""
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize >> 10


class Ballast:
    """A file that fills a disk but for so many KiB, until it is thrown out."""

    def __init__(self, place: Path, leaving_kib: int) -> None:
        self._path = place / "ballast"
        self._path.write_bytes(bytes((free_kib(place) - leaving_kib) << 10))

    def throw_out(self) -> None:
        self._path.unlink()


if __name__ == "__main__":
    # What is worked on prints here and there; the result goes out alone.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    called, given = pickle.load(sys.stdin.buffer)
    with out:
        out.write(pickle.dumps(called(*given)))
