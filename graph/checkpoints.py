"""The checkpoints' file: opened so that a crash of ours loses nothing, and kept small.

Invariant: a run's newest checkpoints, with what was written under them, are never pruned, so a run resumes from where
it stood. A power cut may lose the last commits; the store has the work.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from langgraph.checkpoint.sqlite import SqliteSaver

from memory.disk import disk_full, sqlite_full

KEPT = 4
"""Checkpoints of a run: more than a superstep writes, since the newest may be half written when a kill comes."""


class Checkpoints(SqliteSaver):
    """langgraph's saver, but what fails is rolled back whole, and a full disk is DiskFull.

    The original commits what a failed statement has left. Of a task's writes that may be some, and a task with any
    counts as done when a run resumes: the rest would be lost.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        super().__init__(connection)
        self._path = path

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """See SqliteSaver; every read and write of it goes through here."""
        with self.lock, _full_disks(self._path):
            self.setup()
            with closing(self.conn.cursor()) as cursor:
                try:
                    yield cursor
                    if transaction:
                        self.conn.commit()
                except BaseException:
                    if transaction:
                        self.conn.rollback()
                    raise


@contextmanager
def open_checkpoints(path: Path) -> Iterator[Checkpoints]:
    """The saver of a file, created where absent. Raises DiskFull, as does its use."""
    with _full_disks(path):
        connection = sqlite3.connect(path, check_same_thread=False)
    with closing(connection):
        with _full_disks(path):
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
        yield Checkpoints(connection, path)


@contextmanager
def _full_disks(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        if (code := sqlite_full(error, path)) is None:
            raise
        raise disk_full(path, code) from error


def prune(saver: SqliteSaver, run_id: str) -> None:
    """Delete a run's checkpoints but the last KEPT. Free pages are used again, so the file stops growing.

    langgraph rewrites the whole state in every superstep and keeps every version; nothing here reads old ones.
    """
    with saver.cursor() as cursor:
        cursor.execute(
            "SELECT checkpoint_id FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_id DESC LIMIT 1 OFFSET ?",
            (run_id, KEPT - 1),
        )
        if (oldest := cursor.fetchone()) is None:
            return
        for table in ("checkpoints", "writes"):
            cursor.execute(
                f"DELETE FROM {table} WHERE thread_id = ? AND checkpoint_id < ?",
                (run_id, oldest[0]),
            )
