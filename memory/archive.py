"""The innovation archive: verified winners, found by likeness.

Here: what is kept, what replaces what, and how it is searched. Not here: the vector store (`memory.chroma`), what an
entry says (`memory.archive_entry`) and how texts become vectors (`memory.embedding`).

Each innovation's JSON is one metadata field of its entry. So an entry is written at once or not at all, a server
needs nothing beside it, and re-embedding needs only the archive. Measured with 5,000 sources of 6 kB: 16 MB more
a thousand entries than without the JSON, and no slower queries.

Invariants: one entry per program, problem and architecture, the better verified one; an entry whose record does not
validate is never handed out.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import TracebackType

import numpy as np

from memory.archive_entry import (
    AddCounts,
    ArchiveFilter,
    ArchiveStats,
    Hit,
    ImportReport,
    Refused,
    better,
    description_and_code,
    document_of,
    from_line,
    imported,
    innovation_id,
    metadata_of,
    to_line,
)
from memory.chroma import ChromaEntries, Identity
from memory.chroma_requests import PAGE, RECORD, Entry
from memory.embedding import Embedder, Vectors
from memory.errors import ArchiveError
from memory.ranking import ranked
from memory.records import SCHEMA_VERSION, Innovation, Problem
from memory.signature import problem_signature

CONSIDERED = 8
"""Entries looked at for each neighbour that is asked for."""

CODE_WEIGHT = 0.5
"""Share of the source in an entry's vector, the description counting 1."""

LOG = logging.getLogger(__name__)


class Archive:
    """The archive at a folder or a server's URL. Use as a context manager, or close it.

    Threads may share it, and processes may share a folder.
    """

    def __init__(self, entries: ChromaEntries, embedder: Embedder) -> None:
        self._entries = entries
        self._embedder = embedder

    @classmethod
    def open(cls, location: str | Path, embedder: Embedder, *, reembed: bool = False) -> Archive:
        """Open, or create where absent, the archive at a folder or an `http(s)://host:port` URL.

        Raises: ArchiveError where it is damaged, unreachable, of another schema version, or embedded otherwise;
        with `reembed`, the last is repaired by computing all its vectors anew.
        """
        entries = ChromaEntries(
            str(location), _identity(embedder), lambda documents: _vectors(documents, embedder)
        )
        archive = cls(entries, embedder)
        try:
            if reembed and not archive._entries.fits():
                archive.reembed(embedder)
            archive._entries.get(["any"])
        except BaseException:
            archive.close()
            raise
        return archive

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the archive go; using it afterwards raises ArchiveError."""
        self._entries.close()

    def add(self, innovation: Innovation) -> AddCounts:
        """Keep an innovation, unless the archive has the same program, problem and arch, as well verified."""
        return self.add_all((innovation,))

    def add_lines(self, lines: Iterable[str]) -> AddCounts:
        """Keep what another archive's `lines` gave. Raises ArchiveError at the first line that is refused."""
        return self.add_all(from_line(line) for line in lines)

    def add_all(self, innovations: Iterable[Innovation]) -> AddCounts:
        """Keep many. Raises ArchiveError at the first invalid one; earlier pages of them stay."""
        sums: Counter[str] = Counter()
        waiting = iter(innovations)
        while page := list(islice(waiting, PAGE)):
            sums.update(self._add_page(page))
        return AddCounts(**sums)

    def remove(self, entry_id: str) -> None:
        """Take an entry out; harmless where it is absent."""
        self._entries.delete(entry_id)

    def reembed(self, embedder: Embedder) -> None:
        """Compute all vectors anew and use this embedder from now on; killed midway, it leaves the archive whole."""
        self._entries.rebuild(_identity(embedder), lambda documents: _vectors(documents, embedder))
        self._embedder = embedder

    def search(self, query_text: str, *, limit: int = 8, where: ArchiveFilter | None = None) -> list[Hit]:
        """The entries most like a text, best first, at most `limit`."""
        if limit < 1:
            return []
        wanted = where or ArchiveFilter()
        vector = self._embedder.embed([query_text])
        contained = {"operations": wanted.members()}
        hits: list[Hit] = []
        for entry, similarity in self._entries.nearest(vector, limit, wanted.equalities(), contained):
            try:
                hits.append(Hit(entry.id, _innovation(entry), similarity))
            except ArchiveError as error:
                LOG.warning("entry %s of archive %s is left out: %s", entry.id, self._entries.location, error)
        return hits

    def neighbours(self, problem: Problem, arch: str, limit: int = 8) -> list[Hit]:
        """Innovations for problems like this one, as `memory.ranking` orders them: those for `arch`, then others."""
        signature = problem_signature(problem)
        many = CONSIDERED * max(limit, 0)
        hits = self.search(signature, limit=many, where=ArchiveFilter(arch=arch))
        if len(hits) < many:
            known = {hit.id for hit in hits}
            hits += [hit for hit in self.search(signature, limit=many) if hit.id not in known]
        return ranked(hits, arch, limit)

    def replace(self, innovation: Innovation) -> None:
        """Put an innovation in place of the entry of its id, better or not: what was measured last is what holds."""
        line, entry_id = to_line(innovation), innovation_id(innovation)
        entry = _entry(entry_id, innovation, line)
        self._entries.upsert([entry], _vectors([entry.document], self._embedder))

    def import_lines(self, lines: Iterable[str]) -> ImportReport:
        """Keep what another archive's `lines` gave, as imports: their figures are not this machine's.

        A line that is refused is reported by its number, and the rest goes in.
        """
        counts: Counter[str] = Counter()
        refused: list[Refused] = []

        def valid() -> Iterator[Innovation]:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    try:
                        yield imported(line)
                    except ArchiveError as error:
                        refused.append(Refused(number, str(error)))

        waiting = valid()
        while page := list(islice(waiting, PAGE)):
            counts.update(self._add_page(page))
        return ImportReport(AddCounts(**counts), tuple(refused))

    def get(self, entry_id: str) -> Innovation | None:
        """The entry of this id, None where absent. Raises ArchiveError where its record is refused."""
        return next((_innovation(entry) for entry in self._entries.get([entry_id])), None)

    def browse(
        self, where: ArchiveFilter | None = None, *, limit: int = 50, offset: int = 0
    ) -> tuple[list[Hit], int | None]:
        """A page of the entries that match, newest first, and how many match; None on a server, which does not count.

        Each hit's similarity is 0: nothing was asked for.
        """
        wanted = where or ArchiveFilter()
        page, total = self._entries.page(limit, offset, wanted.equalities(), {"operations": wanted.members()})
        return [Hit(entry.id, _innovation(entry), 0.0) for entry in page], total

    def all_ids(self) -> list[str]:
        """Every entry's id, sorted."""
        return sorted(self._entries.ids())

    def lines(self) -> list[str]:
        """Every entry as a line of JSON that another archive's `add_lines` takes."""
        return list(self.written_lines())

    def written_lines(self) -> Iterator[str]:
        """As `lines`, one after the other; a page of entries is in memory at a time."""
        for page in self._entries.pages():
            yield from (str(entry.metadata[RECORD]) for entry in page)

    def stats(self) -> ArchiveStats:
        """Count the entries by operation, dtype, architecture, source of time and verification."""
        stats = ArchiveStats()
        for facets in self._entries.facets():
            stats.count(facets)
        return stats

    def _add_page(self, page: Sequence[Innovation]) -> dict[str, int]:
        lines = [to_line(innovation) for innovation in page]
        ids = [innovation_id(innovation) for innovation in page]
        chosen: dict[str, int] = {}
        counts: Counter[str] = Counter()
        with self._entries.writing():  # in one turn with the look, or the better of two writers' might lose
            kept = {entry.id: entry for entry in self._entries.get(ids)}
            for place, (entry_id, innovation) in enumerate(zip(ids, page, strict=True)):
                old = page[chosen[entry_id]] if entry_id in chosen else _valid(kept.get(entry_id))
                if old is not None and not better(innovation, old):
                    counts["kept"] += 1
                else:
                    counts["replaced" if old is not None else "added"] += 1
                    chosen[entry_id] = place
            entries = [_entry(entry_id, page[place], lines[place]) for entry_id, place in chosen.items()]
            self._entries.upsert(entries, _vectors([entry.document for entry in entries], self._embedder))
        return counts


def _identity(embedder: Embedder) -> Identity:
    config = {**embedder.config(), "code_weight": CODE_WEIGHT}
    return Identity(embedder.name, json.dumps(config, sort_keys=True), SCHEMA_VERSION)


def _vectors(documents: Sequence[str], embedder: Embedder) -> Vectors:
    """Vectors of entries: the description's plus CODE_WEIGHT times the source's, of length 1."""
    if not documents:
        return np.zeros((0, 1), dtype=np.float32)
    parts = [description_and_code(document) for document in documents]
    words = embedder.embed([text for text, _ in parts])
    code = embedder.embed([text for _, text in parts])
    shares = np.array([[CODE_WEIGHT if text.strip() else 0.0] for _, text in parts], dtype=np.float32)
    mixed = words + shares * code
    return np.asarray(mixed / np.linalg.norm(mixed, axis=1, keepdims=True), dtype=np.float32)


def _entry(entry_id: str, innovation: Innovation, line: str) -> Entry:
    return Entry(entry_id, document_of(innovation), {**metadata_of(innovation), RECORD: line})


def _innovation(entry: Entry) -> Innovation:
    return from_line(str(entry.metadata.get(RECORD)))


def _valid(entry: Entry | None) -> Innovation | None:
    """The entry's innovation; None where there is none, or one that is refused and so may be replaced."""
    if entry is not None:
        with suppress(ArchiveError):
            return _innovation(entry)
    return None
