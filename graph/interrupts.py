"""Ctrl-C: the command ends at once, with every process it started, and says how to go on.

Covers: an interrupt while nodes wait for workers, which langgraph would wait for too, and one that strikes while
children are being started, whom it must not reach before they can ignore it. Does not cover: other signals, and
processes that made themselves children of another. Invariant: like a kill it loses nothing, for the store, the
checkpoints and the archive are whole at every moment.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from pathlib import Path

from graph.entry import EXIT_INTERRUPTED

_DONE = b"\0"
_CLEAR_LINE_SHOW_CURSOR = "\r\x1b[2K\x1b[?25h"


class Interruptible:
    """What an interrupt tells the user; changed as the work goes on."""

    def __init__(self, remedy: str) -> None:
        self.remedy = remedy

    def end(self) -> None:
        """Kill what this process started, say one line, and end the process. Does not return."""
        for pid in descendants(os.getpid()):
            _kill(pid)
        # Not through rich or typer: the main thread may be holding their locks.
        head = _CLEAR_LINE_SHOW_CURSOR if os.isatty(2) else ""
        os.write(2, f"{head}warpsmith: interrupted; {self.remedy}\n".encode())
        os._exit(EXIT_INTERRUPTED)


@contextmanager
def interruptible(remedy: str) -> Iterator[Interruptible]:
    """Let an interrupt end the process while inside. For the main thread."""
    interrupt = Interruptible(remedy)
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    # The handler itself has nothing to do: the wakeup byte comes from whichever thread the signal struck, while the
    # main thread, where Python would run it, may be waiting for a lock.
    handler = signal.signal(signal.SIGINT, lambda *_: None)
    wakeup = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(read_end, interrupt), daemon=True)
    watcher.start()
    # multiprocessing unblocks the signal when it starts its tracker, so that has to be over.
    resource_tracker.ensure_running()
    # Inherited by threads and processes begun from here on: the terminal interrupts the whole group.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield interrupt
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGINT, handler)
        os.write(write_end, _DONE)
        watcher.join()
        os.close(read_end)
        os.close(write_end)


def descendants(pid: int) -> list[int]:
    """Processes that `pid` started, and theirs, nearest first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := _parent(entry)) is not None:
            children.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for one in found:
        found.extend(children.get(one, ()))
    return found[1:]


def _watch(read_end: int, interrupt: Interruptible) -> None:
    while (byte := os.read(read_end, 1)) != _DONE:
        if byte == bytes([signal.SIGINT]):
            interrupt.end()


def _parent(entry: Path) -> int | None:
    """Parent of the process at /proc/PID; None where it has ended meanwhile."""
    try:
        # The second field is the command in parentheses, which may hold anything.
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        # It ended by itself.
        return
