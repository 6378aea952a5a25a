"""The adapter to Chroma: one collection of vectors, texts and metadata, in a folder or on a server.

Here: the only code that imports chromadb. Not here: what an entry means (`memory.archive`).
Invariants: vectors are always given, so Chroma never fetches a model; all vectors of a collection come from the
embedder its metadata names; a search sees every write that another process finished before it began; Chroma's
errors leave as ArchiveError. Covers: threads and processes of one machine, or a server. Does not cover: two
processes that re-embed one server's archive at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import chromadb
import httpx  # Chroma's own dependency: a server that went away surfaces as its errors
from chromadb.api.client import Client
from chromadb.api.models.Collection import Collection
from chromadb.api.types import Metadata, PyEmbeddings, Where
from chromadb.config import Settings
from chromadb.errors import ChromaError

from memory.disk import disk_full, no_room, telling_full
from memory.embedding import Vectors
from memory.errors import ArchiveError
from memory.lock import WriterLock

NAME = "innovations"
REBUILT = "innovations-rebuilt"
"""Where a rebuild collects; it takes NAME's place only once it is complete."""

PAGE = 500
"""Entries a request; Chroma takes at most 5,461."""

MetadataValue = str | int | float | list[str]


@dataclass(frozen=True)
class Entry:
    """One entry without its vector."""

    id: str
    document: str
    metadata: Mapping[str, MetadataValue]


@dataclass(frozen=True)
class Identity:
    """What made the vectors and records of a collection; two collections mix only where it is equal."""

    embedder: str
    config: str
    records: int

    def metadata(self) -> dict[str, str | int]:
        """As kept with the collection."""
        return {"embedder": self.embedder, "config": self.config, "records": self.records}


class ChromaEntries:
    """The entries of one archive. Every method takes the locks it needs; `writing` joins several into one turn."""

    def __init__(self, location: str, identity: Identity) -> None:
        """Open or create. Raises ArchiveError where it is damaged or unreachable; identity is checked on use."""
        self.location = location
        self._identity = identity
        self._lock = threading.RLock()
        self._seen_writes = -1
        self._closed = False
        with self._explained():
            self._client, self._writers = _connected(location)
        try:
            with self.writing():
                self._settle()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let the collection go; using it afterwards raises ArchiveError."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._client.close()

    def fits(self) -> bool:
        """True where the collection was made by the embedder that it was opened for."""
        with self._explained(), self._lock:
            return self._metadata() == self._identity.metadata()

    def upsert(self, entries: Sequence[Entry], vectors: Vectors) -> None:
        """Write entries and their vectors, shape (entries, dimension), over those of the same ids."""
        with self.writing():
            _upsert(self._collection(), entries, vectors)

    def delete(self, entry_id: str) -> None:
        """Take an entry out; harmless where it is absent."""
        with self.writing():
            self._collection().delete(ids=[entry_id])

    def rebuild(self, identity: Identity, embed: Callable[[Sequence[str]], Vectors]) -> None:
        """Compute every vector anew from the kept documents; killed midway, it leaves the collection whole."""
        with self.writing():
            old = self._client.get_collection(NAME, embedding_function=None)
            if REBUILT in self._names():
                self._client.delete_collection(REBUILT)
            new = self._created(REBUILT, identity)
            for page in _pages(old):
                _upsert(new, page, embed([entry.document for entry in page]))
            if new.count() != old.count():
                raise ArchiveError(f"re-embedding {self.location!r} lost entries; it is as it was, try again")
            self._client.delete_collection(NAME)
            new.modify(name=NAME)
            self._identity = identity

    def nearest(
        self, vector: Vectors, limit: int, equal: Mapping[str, str], contains: Mapping[str, Sequence[str]]
    ) -> list[tuple[Entry, float]]:
        """The entries nearest to a vector of shape (1, dimension), with their cosine similarity, best first.

        Only entries whose metadata fields equal `equal` and whose lists hold all of `contains`.
        """
        with self._reading() as collection:
            found = collection.query(
                query_embeddings=cast(PyEmbeddings, vector),
                n_results=limit,
                where=_clauses(equal, contains),
                include=["metadatas", "documents", "distances"],
            )
        distances = (found["distances"] or [[]])[0]
        entries = _entries(found["ids"][0], (found["documents"] or [[]])[0], (found["metadatas"] or [[]])[0])
        return [(entry, 1.0 - float(distance)) for entry, distance in zip(entries, distances, strict=True)]

    def get(self, ids: Sequence[str]) -> list[Entry]:
        """Those of `ids` that exist, in no order."""
        with self._reading() as collection:
            found = collection.get(ids=sorted(set(ids)), include=["metadatas", "documents"])
        return _entries(found["ids"], found["documents"] or [], found["metadatas"] or [])

    def ids(self) -> list[str]:
        """Every id, in no order."""
        with self._reading() as collection:
            return list(collection.get(include=[])["ids"])

    def pages(self) -> Iterator[list[Entry]]:
        """Every entry, some hundred at a time; holds the lock of this process's threads meanwhile."""
        with self._reading() as collection:
            yield from _pages(collection)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Alone among the writers of all processes; afterwards this process's index is up to date."""
        with self._explained(), self._lock:
            if self._writers is None or self._writers.held:
                yield
                return
            with self._writers.writing() as count:
                yield
            # Chroma's index reads the whole log at each write of its own, others' writes included.
            self._seen_writes = count

    # --- inside -------------------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[Collection]:
        """The collection, caught up with the writes of other processes."""
        with self._explained(), self._lock:
            collection = self._collection()
            if (
                self._writers is not None
                and not self._writers.held
                and self._writers.writes() != self._seen_writes
            ):
                with self._writers.reading() as count:
                    # Chroma's index sees others' writes only when it writes itself; this one changes nothing.
                    collection.delete(ids=["nothing"])
                self._seen_writes = count
            yield collection

    def _settle(self) -> None:
        """Make sure that the collection exists, finishing a rebuild that was killed before its last step."""
        names = self._names()
        if NAME in names:
            return
        if REBUILT in names:
            self._client.get_collection(REBUILT, embedding_function=None).modify(name=NAME)
        else:
            self._created(NAME, self._identity)

    def _names(self) -> set[str]:
        return {collection.name for collection in self._client.list_collections()}

    def _created(self, name: str, identity: Identity) -> Collection:
        return self._client.get_or_create_collection(
            name,
            metadata=dict(identity.metadata()),
            configuration={"hnsw": {"space": "cosine"}},
            embedding_function=None,
        )

    def _metadata(self) -> dict[str, object]:
        """The collection's metadata. Raises ArchiveError where its records are of another schema version."""
        metadata = dict(self._client.get_collection(NAME, embedding_function=None).metadata or {})
        if metadata.get("records") != self._identity.records:
            raise ArchiveError(
                f"archive {self.location!r} holds records of version {metadata.get('records')!r}, and this "
                f"Warpsmith reads {self._identity.records}; use the one that wrote it, or name another archive"
            )
        return metadata

    def _collection(self) -> Collection:
        """The collection as it is now. Raises ArchiveError where the embedder did not make it."""
        found, wanted = self._metadata(), self._identity.metadata()
        if found != wanted:
            raise ArchiveError(
                f"archive {self.location!r} is embedded with {found.get('embedder')!r} {found.get('config')}, not "
                f"{wanted['embedder']!r} {wanted['config']}; open it with that embedder, or with reembed=True to "
                "compute its vectors anew"
            )
        return self._client.get_collection(NAME, embedding_function=None)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        if self._closed:
            raise ArchiveError(f"archive {self.location!r} is closed; open it again")
        try:
            with telling_full(Path(self.location)):
                yield
        except (ChromaError, httpx.HTTPError, OSError) as error:
            database = Path(self.location) / "chroma.sqlite3"
            if not _is_url(self.location) and (code := no_room(database)) is not None:
                raise disk_full(database, code) from error
            remedy = (
                "check that the server runs" if _is_url(self.location) else "restore a copy of the folder"
            )
            raise ArchiveError(
                f"archive {self.location!r} cannot be used: {error}; {remedy}, or name another archive"
            ) from error


def _is_url(location: str) -> bool:
    return location.startswith(("http://", "https://"))


def _connected(location: str) -> tuple[Client, WriterLock | None]:
    settings = Settings(anonymized_telemetry=False)  # anew each time: Chroma writes into it
    if not _is_url(location):
        folder = Path(location).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        client = chromadb.PersistentClient(path=folder, settings=settings)
        return cast(Client, client), WriterLock(folder / "writers.lock")
    url = urlsplit(location)
    try:
        secure = url.scheme == "https"
        client = chromadb.HttpClient(
            host=url.hostname or "", port=url.port or (443 if secure else 8000), ssl=secure, settings=settings
        )
    except ValueError as error:  # Chroma's way to say that nothing answers
        raise ArchiveError(
            f"archive {location!r} is unreachable: {error} Start it with `chroma run`, or name a folder"
        ) from error
    return cast(Client, client), None


def _clauses(equal: Mapping[str, str], contains: Mapping[str, Sequence[str]]) -> Where | None:
    """Chroma's filter: one operator a clause, and `$and` only around two or more."""
    clauses: list[object] = [{name: value} for name, value in equal.items()]
    clauses += [{name: {"$contains": value}} for name, values in contains.items() for value in values]
    if len(clauses) > 1:
        return cast(Where, {"$and": clauses})
    return cast(Where, clauses[0]) if clauses else None


def _upsert(collection: Collection, entries: Sequence[Entry], vectors: Vectors) -> None:
    if entries:
        collection.upsert(
            ids=[entry.id for entry in entries],
            embeddings=cast(
                PyEmbeddings, vectors
            ),  # a matrix is taken as it is, though the types ask for lists
            documents=[entry.document for entry in entries],
            metadatas=[cast(Metadata, dict(entry.metadata)) for entry in entries],
        )


def _entries(ids: Sequence[str], documents: Sequence[str], metadatas: Sequence[Metadata]) -> list[Entry]:
    rows = zip(ids, documents, metadatas, strict=True)
    return [Entry(i, document, cast(Mapping[str, MetadataValue], metadata)) for i, document, metadata in rows]


def _pages(collection: Collection) -> Iterator[list[Entry]]:
    for offset in range(0, collection.count(), PAGE):
        found = collection.get(limit=PAGE, offset=offset, include=["metadatas", "documents"])
        yield _entries(found["ids"], found["documents"] or [], found["metadatas"] or [])
