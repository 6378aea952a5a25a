"""The store's SQLite file: tables, version, one guarded connection, and errors put into words.

Here: everything that speaks SQL's dialect of open, lock, commit and fail. Not here: records, which `memory.store`
writes and `memory.store_reader` reads.
Invariants: what `writing()` did is committed when it returns, or nothing of it is; no statement here deletes;
a file of another version, of another program or damaged is refused and left as it was.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memory.disk import disk_full, is_full, sqlite_full
from memory.errors import StoreError
from memory.records import SCHEMA_VERSION

STORE_VERSION = 1
"""Raised whenever a table changes."""

CHECK_BELOW_BYTES = 32 << 20
"""Files up to this size are checked page by page on opening; larger ones by `Store.check`."""

Value = str | int | float | None

TABLES = """
CREATE TABLE schema_version (store INTEGER NOT NULL, records INTEGER NOT NULL);
CREATE TABLE problems (hash TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE pairs (
    problem_hash TEXT PRIMARY KEY REFERENCES problems (hash),
    twin_hash TEXT REFERENCES problems (hash)
) WITHOUT ROWID;
CREATE TABLE sources (hash TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE programs (
    hash TEXT PRIMARY KEY,
    source_hash TEXT NOT NULL REFERENCES sources (hash),
    body TEXT NOT NULL
);
CREATE TABLE runs (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    problem_hash TEXT NOT NULL REFERENCES problems (hash),
    device TEXT NOT NULL,
    created TEXT NOT NULL,
    status TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE TABLE candidates (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    run_id TEXT NOT NULL REFERENCES runs (id),
    program_hash TEXT NOT NULL REFERENCES programs (hash),
    body TEXT NOT NULL
);
CREATE INDEX candidates_of_run ON candidates (run_id, seq);
CREATE TABLE evaluations (
    seq INTEGER PRIMARY KEY,
    program_hash TEXT NOT NULL REFERENCES programs (hash),
    problem_hash TEXT NOT NULL REFERENCES problems (hash),
    policy_hash TEXT NOT NULL,
    device TEXT NOT NULL,
    status TEXT NOT NULL,
    median_us REAL,
    body TEXT NOT NULL,
    UNIQUE (program_hash, problem_hash, policy_hash, device)
);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    run_id TEXT NOT NULL REFERENCES runs (id),
    agent TEXT NOT NULL,
    tokens_in INTEGER,
    tokens_out INTEGER,
    cost_usd REAL,
    body TEXT NOT NULL
);
CREATE INDEX events_of_run ON events (run_id, seq);
CREATE TABLE reviews (
    seq INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    candidate_id TEXT NOT NULL REFERENCES candidates (id),
    body TEXT NOT NULL
);
CREATE INDEX reviews_of_candidate ON reviews (candidate_id, seq);
"""

ADDED = """
CREATE TABLE IF NOT EXISTS requests (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    run_id TEXT NOT NULL REFERENCES runs (id),
    slip TEXT NOT NULL,
    body TEXT
);
CREATE INDEX IF NOT EXISTS requests_by_slip ON requests (slip);
CREATE INDEX IF NOT EXISTS requests_of_run ON requests (run_id) WHERE body IS NOT NULL;
"""
"""Tables that stores of this version may lack: they are added on opening, and older Warpsmiths do not look at them."""

REMEDIES = (
    (
        "SQLITE_CORRUPT",
        "is damaged; restore a copy, or salvage it with: sqlite3 {path} .recover | sqlite3 new.db",
    ),
    ("SQLITE_NOTADB", "is not a SQLite database; name another file, or restore a copy of the store"),
    (
        "SQLITE_BUSY",
        "stayed locked by another process for {timeout_s:g} s; end that process or wait, then retry",
    ),
    ("SQLITE_READONLY", "may not be written; check the permissions of the file and its folder"),
    ("SQLITE_CANTOPEN", "cannot be opened; check that it is a file and that its folder may be written"),
    ("SQLITE_IOERR", "could not be read or written by the system; check the disk, then retry"),
    ("SQLITE_CONSTRAINT_FOREIGNKEY", "lacks a record that this one names; put that record first"),
)
"""SQLite's error names by prefix, and what we say of the file."""


class Database:
    """One connection to the store's file, shared by the threads of a process.

    Covers: threads (a lock), processes (SQLite's locks, waited for up to `timeout_s`), and a killed process
    (write-ahead log). Does not cover: use across fork, or the last commits when the power fails
    (`synchronous=NORMAL`; the file itself stays intact).
    """

    def __init__(self, path: Path, *, timeout_s: float = 30.0) -> None:
        self.path = path
        self._timeout_s = timeout_s
        self._lock = threading.RLock()
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                path, timeout=timeout_s, isolation_level=None, check_same_thread=False
            )
        try:
            with self._explained():
                self._connection.execute("PRAGMA foreign_keys=ON")
            # First of all, so that another program's database is not even switched to a write-ahead log.
            known = self._version_fits()
            with self._explained():
                self._use_write_ahead_log()
                self._connection.execute("PRAGMA synchronous=NORMAL")
            if not known:
                self._create()
            self._add()
            if path.stat().st_size <= CHECK_BELOW_BYTES:
                self.check()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Let the file go; using the database afterwards raises StoreError."""
        with self._lock:
            self._connection.close()

    def rows(self, sql: str, *values: Value) -> list[tuple[Value, ...]]:
        """All rows of a query."""
        with self._lock, self._explained():
            return self._connection.execute(sql, values).fetchall()

    def texts(self, sql: str, *values: Value) -> list[str]:
        """The first column of all rows of a query."""
        return [str(row[0]) for row in self.rows(sql, *values)]

    def text(self, sql: str, *values: Value) -> str | None:
        """The first column of the first row, or None where there is no row."""
        return next(iter(self.texts(sql, *values)), None)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the file for writing; commits on leaving, rolls back on any exception. Inside of another, part of it."""
        with self._lock, self._explained():
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def insert(self, table: str, **columns: Value) -> bool:
        """Insert a row inside `writing()` unless its key is there; True where it was new."""
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        statement = f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT DO NOTHING"
        with self._explained():
            return self._connection.execute(statement, tuple(columns.values())).rowcount == 1

    def execute(self, sql: str, *values: Value) -> None:
        """Run a statement inside `writing()`."""
        with self._explained():
            self._connection.execute(sql, values)

    def check(self) -> None:
        """Read every page. Raises StoreError where the file is damaged."""
        found = self.texts("PRAGMA quick_check(1)")
        if found != ["ok"]:
            raise StoreError(f"store {str(self.path)!r} {self._remedy('SQLITE_CORRUPT')} ({found[:1]})")

    def _use_write_ahead_log(self) -> None:
        # Changing the journal mode does not wait as other statements do, and two processes may start at once.
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _version_fits(self) -> bool:
        """True for a store of this version, False for an empty file. Raises StoreError for any other."""
        tables = self.texts("SELECT name FROM sqlite_master WHERE type = 'table'")
        if not tables:
            return False
        if "schema_version" not in tables:
            raise StoreError(f"{str(self.path)!r} is another program's database; name another file")
        found = self.rows("SELECT store, records FROM schema_version")
        if found != [(STORE_VERSION, SCHEMA_VERSION)]:
            raise StoreError(
                f"store {str(self.path)!r} has versions (tables, records) {found}, and this Warpsmith reads "
                f"{(STORE_VERSION, SCHEMA_VERSION)}; use the Warpsmith that wrote it, or name another file"
            )
        return True

    def _create(self) -> None:
        with self.writing():
            if not self._version_fits():  # another process may have been quicker
                for statement in TABLES.split(";"):
                    self._connection.execute(statement)
                self.insert("schema_version", store=STORE_VERSION, records=SCHEMA_VERSION)

    def _add(self) -> None:
        if not self.rows("SELECT 1 FROM sqlite_master WHERE name = 'requests_of_run'"):
            with self.writing():
                for statement in ADDED.split(";"):
                    self._connection.execute(statement)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.ProgrammingError as error:
            raise StoreError(f"store {str(self.path)!r} was used wrongly: {error}; open it again") from error
        except sqlite3.DatabaseError as error:
            if (code := sqlite_full(error, self.path)) is not None:
                raise disk_full(self.path, code) from error
            remedy = self._remedy(getattr(error, "sqlite_errorname", ""))
            raise StoreError(f"store {str(self.path)!r} {remedy} ({error})") from error
        except OSError as error:
            if error.errno is not None and is_full(error):
                raise disk_full(self.path, error.errno) from error
            remedy = self._remedy("SQLITE_CANTOPEN")
            raise StoreError(f"store {str(self.path)!r} {remedy} ({error})") from error

    def _remedy(self, code: str) -> str:
        found = next(
            (text for prefix, text in REMEDIES if code.startswith(prefix)),
            "failed; check it with Store.check",
        )
        return found.format(path=self.path, timeout_s=self._timeout_s)
