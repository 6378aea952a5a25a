"""Resident memory of this process and all that it started, sampled from /proc (Linux)."""

from __future__ import annotations

import os
import threading
from pathlib import Path

EVERY_S = 1.0
_PAGE = os.sysconf("SC_PAGE_SIZE")


class PeakMemory:
    """Samples while it is entered. Pages that processes share are counted for each: the sum is an upper bound."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._peak = 0

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def peak_mib(self) -> float:
        """The largest sum seen, in MiB."""
        return round(self._peak / 2**20, 1)

    def _watch(self) -> None:
        while True:
            self._peak = max(self._peak, tree_bytes(os.getpid()))
            if self._ended.wait(EVERY_S):
                return


def tree_bytes(root: int) -> int:
    """Resident bytes of a process and its descendants; one that ends meanwhile counts for nothing."""
    children: dict[int, list[int]] = {}
    resident: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # The second field is a name in brackets, which may hold anything.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        pid = int(folder.name)
        children.setdefault(int(fields[1]), []).append(pid)
        resident[pid] = int(fields[21]) * _PAGE
    total, waiting = 0, [root]
    while waiting:
        pid = waiting.pop()
        total += resident.get(pid, 0)
        waiting += children.get(pid, [])
    return total
