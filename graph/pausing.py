"""What a full disk does to a run: it is paused, and whoever reads the message knows how to go on.

Not here: how a full disk is recognised (memory.disk), the run's lock (memory.lock). Invariant: nothing is undone by a
pause, for every verdict and answer was committed when it came; so a run that could not even be marked as paused, and is
shown as interrupted, goes on like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from graph.folders import require_writable
from graph.results import export_path
from memory.disk import full_of, is_full
from memory.errors import BadInput, DiskFull
from memory.records import Run, RunStatus
from memory.store import Store


@contextmanager
def telling_how_to_go_on(run: Run) -> Iterator[None]:
    """Let DiskFull say how the run is continued."""
    try:
        yield
    except DiskFull as full:
        raise DiskFull(
            f"{full}, then continue with `warpsmith resume {run.id}`: it has lost nothing"
        ) from full


@contextmanager
def working(run: Run, store: Store, *, reopened: bool = False) -> Iterator[None]:
    """Mark a run as running while inside, and as paused where the disk is full. For the holder of the run's lock.

    reopened: it may have improved, and is taken up again to roll back.
    Raises: BadInput where the run has ended, perhaps just before the lock was free, or its export folder cannot be
    written to; DiskFull.
    """
    status = store.run(run.id).status
    if status.ended and not (reopened and status is RunStatus.IMPROVED):
        raise BadInput(f"run {run.id} has ended ({status.words}); see `warpsmith show {run.id}`")
    if status is RunStatus.PAUSED:
        store.update_run(run.id, status=RunStatus.RUNNING, best_candidate=None)
    try:
        with _full_disks(store.path.parent):
            require_writable(
                export_path(run).parent, "make room for it there, or start another run with --out"
            )
            yield
    except DiskFull:
        with suppress(DiskFull):  # a status needs room too
            store.update_run(run.id, status=RunStatus.PAUSED, best_candidate=None)
        raise


@contextmanager
def _full_disks(home: Path) -> Iterator[None]:
    """DiskFull for what nobody has put into words yet: temporary files, a progress display that goes to a file."""
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        raise full_of(error, home) from error
