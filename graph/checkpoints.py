"""The checkpoints' file: opened so that a crash of ours loses nothing, and kept small.

Invariant: a run's newest checkpoints, with what was written under them, are never pruned, so a run resumes from where
it stood. A power cut may lose the last commits; the store has the work.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from langgraph.checkpoint.sqlite import SqliteSaver

KEPT = 4
"""Checkpoints of a run: more than a superstep writes, since the newest may be half written when a kill comes."""


@contextmanager
def open_checkpoints(path: Path) -> Iterator[SqliteSaver]:
    """The saver of a file, created where absent."""
    connection = sqlite3.connect(path, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    try:
        yield SqliteSaver(connection)
    finally:
        connection.close()


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
