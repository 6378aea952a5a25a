"""The adapter to Chroma: one collection of vectors, texts and metadata, in a folder or on a server.

Here: the only code that imports chromadb. Not here: what an entry means (`memory.archive`), how a folder is searched
(`memory.facet_index`; a server searches itself).
Invariants: vectors are always given, so Chroma never fetches a model; all vectors of a collection come from the
embedder its metadata names; a search sees every write that another process finished before it began; Chroma's
errors leave as ArchiveError. Covers: threads and processes of one machine, or a server. Does not cover: two
processes that re-embed one server's archive at the same time.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import chromadb
import httpx  # Chroma's own dependency: a server that went away surfaces as its errors
from chromadb.api.client import Client
from chromadb.api.models.Collection import Collection
from chromadb.config import Settings
from chromadb.errors import ChromaError

from memory.chroma_requests import (
    EQUAL,
    LISTED,
    Embed,
    Entry,
    clauses,
    facets_of,
    read,
    read_pages,
    rows,
    search_server,
    write,
)
from memory.disk import disk_full, no_room, sqlite_full, telling_full
from memory.embedding import Vectors
from memory.errors import ArchiveError
from memory.facet_index import FacetIndex, Facets
from memory.lock import WriterLock

NAME = "innovations"
REBUILT = "innovations-rebuilt"
"""Where a rebuild collects; it takes NAME's place only once it is complete."""


@dataclass(frozen=True)
class Identity:
    """What made the vectors and records of a collection; two collections mix only where it is equal."""

    embedder: str
    config: str
    records: int

    def metadata(self) -> dict[str, str | int]:
        """As kept with the collection."""
        return {"embedder": self.embedder, "config": self.config, "records": self.records}

    @property
    def index_name(self) -> str:
        """Name of the index file that fits."""
        text = json.dumps(self.metadata(), sort_keys=True)
        return f"index-{hashlib.sha256(text.encode()).hexdigest()[:16]}.db"


class ChromaEntries:
    """The entries of one archive. Every method takes the locks it needs; `writing` joins several into one turn."""

    def __init__(self, location: str, identity: Identity, embed: Embed) -> None:
        """Open or create. Raises ArchiveError where it is damaged or unreachable; identity is checked on use."""
        self.location = location
        self._identity = identity
        self._embed = embed
        self._lock = threading.RLock()
        self._opened: FacetIndex | None = None
        self._closed = False
        with self._explained():
            self._client, self._writers = _connected(location)
        try:
            with self.writing():
                self._settle()
                if self.fits():
                    self._index()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let the collection go; using it afterwards raises ArchiveError."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._client.close()
                if self._opened is not None:
                    self._opened.close()

    def fits(self) -> bool:
        """True where the collection was made by the embedder that it was opened for."""
        with self._explained(), self._lock:
            return self._metadata() == self._identity.metadata()

    def upsert(self, entries: Sequence[Entry], vectors: Vectors) -> None:
        """Write entries and their vectors, shape (entries, dimension), over those of the same ids."""
        with self.writing():
            collection, index, ids = self._collection(), self._index(), [entry.id for entry in entries]
            if index is not None:
                index.begin(ids)
            write(collection, entries, vectors)
            if index is not None and entries:
                index.put(ids, [facets_of(entry) for entry in entries], vectors)

    def delete(self, entry_id: str) -> None:
        """Take an entry out; harmless where it is absent."""
        with self.writing():
            collection, index = self._collection(), self._index()
            if index is not None:
                index.begin([entry_id])
            collection.delete(ids=[entry_id])
            if index is not None:
                index.remove([entry_id])

    def rebuild(self, identity: Identity, embed: Embed) -> None:
        """Compute every vector anew from the kept documents; killed midway, it leaves the collection whole."""
        with self.writing():
            old = self._client.get_collection(NAME, embedding_function=None)
            if REBUILT in self._names():
                self._client.delete_collection(REBUILT)
            new = self._created(REBUILT, identity)
            index = self._new_index(identity)
            for page in read_pages(old):
                vectors = embed([entry.document for entry in page])
                write(new, page, vectors)
                if index is not None:
                    index.put([entry.id for entry in page], [facets_of(entry) for entry in page], vectors)
            if new.count() != old.count():
                raise ArchiveError(f"re-embedding {self.location!r} lost entries; it is as it was, try again")
            if index is not None:
                index.finish()
            self._client.delete_collection(NAME)
            new.modify(name=NAME)
            self._identity, self._embed = identity, embed
            if self._opened is not None:
                self._opened.close()
            self._opened = index
            self._sweep()

    def nearest(
        self, vector: Vectors, limit: int, equal: Mapping[str, str], contains: Mapping[str, Sequence[str]]
    ) -> list[tuple[Entry, float]]:
        """The entries nearest to a vector of shape (1, dimension), with their cosine similarity, best first.

        Only entries whose metadata fields (of EQUAL) equal `equal` and whose lists (of LISTED) hold all of `contains`.
        """
        with self._reading() as collection:
            index = self._index()
            if index is None:
                return search_server(collection, vector, limit, equal, contains)
            found = index.nearest(vector[0], limit, equal, contains)
            kept = {entry.id: entry for entry in read(collection, [i for i, _ in found])}
        return [(kept[i], similarity) for i, similarity in found if i in kept]

    def page(
        self, limit: int, offset: int, equal: Mapping[str, str], contains: Mapping[str, Sequence[str]]
    ) -> tuple[list[Entry], int | None]:
        """Some of the entries that match, newest first in a folder, and how many match; a server does not count."""
        with self._reading() as collection:
            index = self._index()
            if index is None:
                found = collection.get(
                    where=clauses(equal, contains),
                    limit=limit,
                    offset=offset,
                    include=["metadatas", "documents"],
                )
                return rows(found["ids"], found["documents"] or [], found["metadatas"] or []), None
            ids = index.newest(equal, contains)
            wanted = ids[offset : offset + limit]
            kept = {entry.id: entry for entry in read(collection, wanted)}
        return [kept[i] for i in wanted if i in kept], len(ids)

    def facets(self) -> Iterator[Facets]:
        """The metadata of every entry, without its record."""
        with self._reading() as collection:
            index = self._index()
            if index is not None:
                yield from index.facets()
                return
            for page in read_pages(collection):
                yield from (facets_of(entry) for entry in page)

    def get(self, ids: Sequence[str]) -> list[Entry]:
        """Those of `ids` that exist, in no order."""
        with self._reading() as collection:
            return read(collection, ids)

    def ids(self) -> list[str]:
        """Every id, in no order."""
        with self._reading() as collection:
            return list(collection.get(include=[])["ids"])

    def pages(self) -> Iterator[list[Entry]]:
        """Every entry, some hundred at a time; holds the lock of this process's threads meanwhile."""
        with self._reading() as collection:
            yield from read_pages(collection)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Alone among the writers of all processes."""
        with self._explained(), self._lock:
            if self._writers is None or self._writers.held:
                yield
                return
            with self._writers.writing():
                yield

    # --- inside -------------------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[Collection]:
        """The collection. Looking an entry up sees others' writes at once, and so does the index."""
        with self._explained(), self._lock:
            yield self._collection()

    def _index(self) -> FacetIndex | None:
        """The index that fits the collection, made where it is absent or behind; None on a server."""
        if self._writers is None:
            return None
        path = Path(self.location).resolve() / self._identity.index_name
        if self._opened is None or not self._opened.is_at(path):
            if self._opened is not None:
                self._opened.close()
            self._opened = FacetIndex(path, EQUAL, LISTED)
            with self.writing():
                self._mend(self._opened)
        elif self._writers.held:
            self._finish_pending(self._opened)
        return self._opened

    def _mend(self, index: FacetIndex) -> None:
        """Bring an index up to its collection: after a kill, or where another version wrote without one."""
        self._finish_pending(index)
        collection = self._collection()
        if index.complete and index.count() == collection.count():
            return
        index.close()
        self._opened = index = cast(FacetIndex, self._new_index(self._identity))
        for page in read_pages(collection):
            vectors = self._embed([entry.document for entry in page])
            index.put([entry.id for entry in page], [facets_of(entry) for entry in page], vectors)
        index.finish()
        self._sweep()

    def _finish_pending(self, index: FacetIndex) -> None:
        """Look at the entries whose writer was killed: whoever holds the lock is the only writer that lives."""
        waiting = index.pending()
        if waiting:
            kept = read(self._collection(), waiting)
            if kept:
                vectors = self._embed([entry.document for entry in kept])
                index.put([entry.id for entry in kept], [facets_of(entry) for entry in kept], vectors)
            index.remove(sorted(set(waiting) - {entry.id for entry in kept}))

    def _new_index(self, identity: Identity) -> FacetIndex | None:
        """An empty index; None on a server."""
        if self._writers is None:
            return None
        path = Path(self.location).resolve() / identity.index_name
        for file in path.parent.glob(f"{path.name}*"):
            file.unlink()
        return FacetIndex(path, EQUAL, LISTED)

    def _sweep(self) -> None:
        """Delete the indexes of earlier embedders."""
        if self._writers is not None:
            for file in Path(self.location).resolve().glob("index-*.db*"):
                if not file.name.startswith(self._identity.index_name):
                    file.unlink()

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
                f"{wanted['embedder']!r} {wanted['config']}; open it with that embedder, or "
                "compute its vectors anew with `warpsmith archive reembed`"
            )
        return self._client.get_collection(NAME, embedding_function=None)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        if self._closed:
            raise ArchiveError(f"archive {self.location!r} is closed; open it again")
        try:
            with telling_full(Path(self.location)):
                yield
        except sqlite3.Error as error:
            place = Path(self.location) / self._identity.index_name
            if (code := sqlite_full(error, place)) is not None:
                raise disk_full(place, code) from error
            raise ArchiveError(
                f"archive {self.location!r}: its index {place.name!r} failed ({error}); delete that file and the ones "
                "beside it that begin alike, it is made anew"
            ) from error
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
