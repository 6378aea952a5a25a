"""Captures ahead: a benchmark's next problems are captured while the present one runs.

Here: the threads, what they found, and how they are stopped. Not here: which problems need a capture (graph.bench).
Invariants: a capture's error is raised where its problem's turn comes, never before; leaving ends every capture that
is under way, with its child; a thread begins nothing by itself, so that an interrupt finds no new child to miss.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from graph.session import capture_target
from graph.settings import Settings
from memory.errors import WarpsmithError
from tools.child import Child
from tools.problem import Captured, parse_target

AHEAD = 1
"""Problems captured beyond the one that runs: a capture is shorter than a run, and uses a core and memory."""


@dataclass(frozen=True)
class Capture:
    """How one capture ended."""

    outcome: Captured | WarpsmithError
    seconds: float
    """Wall seconds that it took, whoever waited for it."""


Capturing = Future[Capture]
"""A capture that was begun."""


class CapturesAhead:
    """Begins captures, each on a thread of its own. Use as a context manager."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._threads = ThreadPoolExecutor(AHEAD + 1, thread_name_prefix="capture")
        self._lock = threading.Lock()
        self._children: set[Child] = set()
        self._closed = False

    def __enter__(self) -> CapturesAhead:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closed = True
            for child in self._children:
                child.cancel()
        self._threads.shutdown(cancel_futures=True)

    def begin(self, path: Path) -> Capturing:
        """Capture the problem of a file, at once where fewer than AHEAD + 1 others are under way."""
        return self._threads.submit(self._capture, path)

    def _capture(self, path: Path) -> Capture:
        started = time.monotonic()
        mine: list[Child] = []

        def watch(child: Child) -> None:
            mine.append(child)
            with self._lock:
                self._children.add(child)
                if self._closed:
                    child.cancel()

        outcome: Captured | WarpsmithError
        try:
            outcome = capture_target(parse_target(str(path)), self._settings, watch=watch)
        except WarpsmithError as error:
            outcome = error
        finally:
            with self._lock:
                self._children.difference_update(mine)
        return Capture(outcome, time.monotonic() - started)


class Needy(Protocol):
    """A job that may need a capture."""

    @property
    def needs_capture(self) -> Path | None:
        """The file to be captured for it."""
        ...


_J = TypeVar("_J", bound=Needy)


def with_captures(
    jobs: Iterable[_J], begin: Callable[[Path], Capturing]
) -> Iterator[tuple[_J, Capturing | None]]:
    """Every job with the capture that it needs, begun while the jobs before it ran."""
    rest = iter(jobs)
    waiting: deque[tuple[_J, Capturing | None]] = deque()
    begun = 0
    while True:
        # Jobs that need none cost nothing, so the look ahead goes on past them.
        while begun <= AHEAD and (job := next(rest, None)) is not None:
            path = job.needs_capture
            waiting.append((job, begin(path) if path else None))
            begun += path is not None
        if not waiting:
            return
        job, capturing = waiting.popleft()
        begun -= capturing is not None
        yield job, capturing
