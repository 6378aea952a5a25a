"""Memory of this process and all that it started, sampled from /proc (Linux).

Proportional set sizes: a page that several processes share, such as PyTorch's code, is counted once.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

EVERY_S = 5.0


class PeakMemory:
    """Samples while it is entered."""

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
    """Proportional set size of a process and its descendants; one that ends meanwhile counts for nothing."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # The second field is a name in brackets, which may hold anything.
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(int(parent), []).append(int(folder.name))
    total, waiting = 0, [root]
    while waiting:
        pid = waiting.pop()
        total += _proportional_bytes(pid)
        waiting += children.get(pid, [])
    return total


def _proportional_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)
