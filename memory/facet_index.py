"""An index beside a folder's collection: facets and vectors of every entry, filtered and compared in this process.

Here: one SQLite file that several processes share, and what this process has read of it. Not here: what an entry means.
Why: Chroma's own filters took 51 to 435 ms at 100,000 entries. A mask over integer codes takes under a millisecond,
and comparing with what it leaves a few more.

Invariants: the file is derived from the collection and may be deleted, it is made anew then; a search sees every write
that was finished before it began; an entry whose writer was killed between collection and index is in `pending`.
What a narrow filter leaves is compared exactly. What a wide one leaves, in two steps: vectors folded to COARSE
dimensions choose RERANKED entries, and these are compared exactly.
"""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memory.embedding import Vectors

VERSION = 1
COARSE = 256
EXACT = 2000
"""Entries that are compared by their whole vectors at once."""
RERANKED = 800
BLOCK = 4096
"""Rows that memory is taken for at a time."""
TIMEOUT_S = 30.0

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE rows (id TEXT PRIMARY KEY, seq INTEGER NOT NULL, facets TEXT NOT NULL, vector BLOB);
CREATE INDEX rows_by_seq ON rows (seq);
CREATE TABLE pending (id TEXT PRIMARY KEY) WITHOUT ROWID;
"""

Facets = Mapping[str, str | int | float | list[str]]
Slots = NDArray[np.int64]


class FacetIndex:
    """One index file. For one thread at a time; writers hold the archive's lock. Raises sqlite3.Error."""

    def __init__(self, path: Path, equal: Sequence[str], listed: Sequence[str]) -> None:
        """equal: fields that a filter compares; listed: fields that hold lists."""
        self.path = path
        self._listed = tuple(listed)
        self._seen = 0
        self._ids: list[str] = []
        self._created: list[str] = []
        self._slot: dict[str, int] = {}
        self._alive = bytearray()
        self._codes: dict[str, array[int]] = {name: array("i") for name in equal}
        self._values: dict[str, dict[str, int]] = {name: {} for name in equal}
        self._postings: dict[tuple[str, str], array[int]] = defaultdict(lambda: array("q"))
        self._fine: list[NDArray[np.float16]] = []
        self._rough: list[Vectors] = []
        self._connection = sqlite3.connect(
            path, timeout=TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        try:
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            if not self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
                with self._writing():
                    for statement in TABLES.split(";"):
                        self._connection.execute(statement)
            self._inode = path.stat().st_ino
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Let the file go."""
        self._connection.close()

    def is_at(self, path: Path) -> bool:
        """True where the file at `path` is this one: another process may have made it anew."""
        try:
            return path == self.path and path.stat().st_ino == self._inode
        except FileNotFoundError:
            return False

    @property
    def complete(self) -> bool:
        """True once every entry of the collection was put."""
        return self._meta("complete") == VERSION

    def finish(self) -> None:
        """Say that every entry was put."""
        with self._writing():
            self._connection.execute("INSERT OR REPLACE INTO meta VALUES ('complete', ?)", (VERSION,))

    def count(self) -> int:
        """Entries in the file."""
        return self._meta("entries")

    def pending(self) -> list[str]:
        """Ids whose write was begun and not finished."""
        return [row[0] for row in self._connection.execute("SELECT id FROM pending")]

    def begin(self, ids: Sequence[str]) -> None:
        """Note which entries are about to change in the collection; `put` or `remove` ends that."""
        with self._writing():
            self._connection.executemany("INSERT OR IGNORE INTO pending VALUES (?)", [(i,) for i in ids])

    def put(self, ids: Sequence[str], facets: Sequence[Facets], vectors: Vectors) -> None:
        """Write entries, vectors of shape (entries, dimension) and length 1, over those of the same ids."""
        rows = zip(ids, facets, vectors.astype(np.float16), strict=True)
        self._write([(i, json.dumps(f), vector.tobytes()) for i, f, vector in rows])

    def remove(self, ids: Sequence[str]) -> None:
        """Take entries out; harmless where they are absent."""
        self._write([(entry_id, "{}", None) for entry_id in ids])

    def facets(self) -> Iterator[Facets]:
        """The facets of every entry, in no order."""
        for (text,) in self._connection.execute("SELECT facets FROM rows WHERE vector IS NOT NULL"):
            yield json.loads(text)

    def nearest(
        self,
        vector: Vectors,
        limit: int,
        equal: Mapping[str, str],
        contains: Mapping[str, Sequence[str]],
        *,
        exact: bool = False,
    ) -> list[tuple[str, float]]:
        """Ids and cosine similarity of the entries nearest to a vector of shape (dimension,), best first.

        exact: compare all whole vectors, which is slow where the filter is wide.
        """
        slots = self._matching(equal, contains)
        if len(slots) > EXACT and not exact:
            short = folded(vector[None])[0]
            rough = np.concatenate([block @ short for block in self._rough])[slots]
            most = max(RERANKED, limit)
            if len(slots) > most:
                slots = slots[np.argpartition(-rough, most)[:most]]
        scores = self._compared(slots, vector)
        # By slot where scores are equal, so that an answer does not depend on how it was found.
        best = np.lexsort((slots, -scores))[:limit]
        return [(self._ids[slots[i]], float(scores[i])) for i in best]

    def newest(self, equal: Mapping[str, str], contains: Mapping[str, Sequence[str]]) -> list[str]:
        """Ids of all matching entries, the newest first."""
        slots = self._matching(equal, contains).tolist()
        return [self._ids[s] for s in sorted(slots, key=lambda s: (self._created[s], s), reverse=True)]

    # --- inside -------------------------------------------------------------------------------------------------

    def _meta(self, key: str) -> int:
        row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return int(row[0]) if row else 0

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _write(self, rows: Sequence[tuple[str, str, bytes | None]]) -> None:
        run = self._connection.execute
        with self._writing():
            seq, entries = self._meta("seq"), self._meta("entries")
            for entry_id, facets, vector in rows:
                had = run("SELECT 1 FROM rows WHERE id = ? AND vector IS NOT NULL", (entry_id,)).fetchone()
                entries += (vector is not None) - (had is not None)
                seq += 1
                run("INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?)", (entry_id, seq, facets, vector))
                run("DELETE FROM pending WHERE id = ?", (entry_id,))
            for key, value in (("seq", seq), ("entries", entries)):
                run("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def _refresh(self) -> None:
        """Read what was written since the last look, by whomever."""
        wanted = "SELECT seq, id, facets, vector FROM rows WHERE seq > ? ORDER BY seq"
        cursor = self._connection.execute(wanted, (self._seen,))
        while page := cursor.fetchmany(BLOCK):
            for seq, entry_id, facets, vector in page:
                old = self._slot.pop(entry_id, None)
                if old is not None:
                    self._alive[old] = 0
                if vector is not None:
                    self._take(entry_id, json.loads(facets), np.frombuffer(vector, dtype=np.float16))
                self._seen = seq
            self._fold()

    def _take(self, entry_id: str, facets: Facets, vector: NDArray[np.float16]) -> None:
        slot = len(self._ids)
        self._slot[entry_id] = slot
        self._ids.append(entry_id)
        self._created.append(str(facets.get("created", "")))
        self._alive.append(1)
        for name, codes in self._codes.items():
            values = self._values[name]
            codes.append(values.setdefault(str(facets.get(name)), len(values)))
        for name in self._listed:
            found = facets.get(name)
            for value in found if isinstance(found, list) else ():
                self._postings[name, value].append(slot)
        if slot % BLOCK == 0:
            self._fine.append(np.zeros((BLOCK, len(vector)), dtype=np.float16))
        self._fine[-1][slot % BLOCK] = vector

    def _fold(self) -> None:
        """Bring the coarse vectors up to the whole ones; only the last block of them can be behind."""
        first = max(len(self._rough) - 1, 0)
        del self._rough[first:]
        self._rough += [folded(block.astype(np.float32)) for block in self._fine[first:]]

    def _matching(self, equal: Mapping[str, str], contains: Mapping[str, Sequence[str]]) -> Slots:
        self._refresh()
        mask = np.frombuffer(bytes(self._alive), dtype=np.bool_).copy()
        for name, value in equal.items():
            mask &= np.frombuffer(self._codes[name].tobytes(), dtype=np.int32) == self._values[name].get(
                value, -1
            )
        for name, values in contains.items():
            for value in values:
                having = np.zeros_like(mask)
                having[np.array(self._postings.get((name, value), ()), dtype=np.int64)] = True
                mask &= having
        return np.flatnonzero(mask)

    def _compared(self, slots: Slots, vector: Vectors) -> NDArray[np.float32]:
        scores = np.zeros(len(slots), dtype=np.float32)
        for number in np.unique(slots // BLOCK):
            here = np.flatnonzero(slots // BLOCK == number)
            scores[here] = self._fine[number][slots[here] % BLOCK].astype(np.float32) @ vector
        return scores


def folded(vectors: Vectors) -> Vectors:
    """Vectors of shape (n, dimension) as (n, COARSE), dot products kept in the mean; as they are where they are short.

    Dimensions get fixed random signs and are added up, so that the errors of a product cancel out.
    """
    count, dimension = vectors.shape
    if dimension <= COARSE:
        return vectors
    signs = np.random.default_rng(7).choice(np.array([-1.0, 1.0], dtype=np.float32), dimension)
    padded = np.zeros((count, -(-dimension // COARSE) * COARSE), dtype=np.float32)
    padded[:, :dimension] = vectors * signs
    return np.ascontiguousarray(padded.reshape(count, -1, COARSE).sum(axis=1))
