"""Memory of this process and all that it started, sampled from /proc (Linux).

Proportional set sizes: a page that several processes share, such as PyTorch's code, is counted once.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path

from graph.interrupts import descendants

EVERY_S = 5.0


@dataclass(frozen=True)
class Held:
    """One process's memory, in bytes."""

    command: str
    pss: int
    """Proportional set size."""
    anonymous: int
    """The part of it that is no file's."""


class PeakMemory:
    """Samples while it is entered."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._peak: dict[int, Held] = {}

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def peak_mib(self) -> float:
        """The largest sum seen, in MiB."""
        return round(_total(self._peak) / 2**20, 1)

    @property
    def by_process(self) -> list[str]:
        """Who held how much at that moment, the largest first."""
        ranked = sorted(self._peak.values(), key=lambda held: held.pss, reverse=True)
        return [
            f"{held.pss >> 20} MiB, {held.anonymous >> 20} anonymous: {held.command[:100]}" for held in ranked
        ]

    def _watch(self) -> None:
        while True:
            self._peak = max(self._peak, tree(os.getpid()), key=_total)
            if self._ended.wait(EVERY_S):
                return


def tree(root: int) -> dict[int, Held]:
    """What a process and its descendants hold; one that ends meanwhile is left out."""
    pids = (root, *descendants(root))
    return {pid: held for pid in pids if (held := _held(pid)) is not None}


def _total(tree: dict[int, Held]) -> int:
    return sum(held.pss for held in tree.values())


def _held(pid: int) -> Held | None:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        command = (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        )
    except (FileNotFoundError, ProcessLookupError):
        return None
    sizes = {line.split()[0]: int(line.split()[1]) << 10 for line in lines[1:]}
    return Held(command, sizes.get("Pss:", 0), sizes.get("Pss_Anon:", 0))
