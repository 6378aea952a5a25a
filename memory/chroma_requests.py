"""Requests to one Chroma collection, and what comes back, as entries.

Here: reading, writing and searching a collection that is given. Not here: which one, and whose turn it is
(`memory.chroma`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from chromadb.api.models.Collection import Collection
from chromadb.api.types import Metadata, PyEmbeddings, Where

from memory.embedding import Vectors
from memory.facet_index import Facets

PAGE = 500
"""Entries a request; Chroma takes at most 5,461."""

OVERFETCHED = 64
"""Entries that a server is asked for before it is asked to filter, which takes it longer."""

EQUAL = ("arch", "dtype", "time_source", "verification", "origin")
LISTED = ("operations",)
"""Metadata that filters may use: fields that equal a value, and lists that contain one."""

RECORD = "record"
"""The metadata field that no filter reads."""

MetadataValue = str | int | float | list[str]
Embed = Callable[[Sequence[str]], Vectors]
"""Documents to vectors of shape (documents, dimension) and length 1."""


@dataclass(frozen=True)
class Entry:
    """One entry without its vector."""

    id: str
    document: str
    metadata: Mapping[str, MetadataValue]


def clauses(equal: Mapping[str, str], contains: Mapping[str, Sequence[str]]) -> Where | None:
    """Chroma's filter: one operator a clause, and `$and` only around two or more."""
    clauses: list[object] = [{name: value} for name, value in equal.items()]
    clauses += [{name: {"$contains": value}} for name, values in contains.items() for value in values]
    if len(clauses) > 1:
        return cast(Where, {"$and": clauses})
    return cast(Where, clauses[0]) if clauses else None


def search_server(
    collection: Collection,
    vector: Vectors,
    limit: int,
    equal: Mapping[str, str],
    contains: Mapping[str, Sequence[str]],
) -> list[tuple[Entry, float]]:
    """What a server finds: many unfiltered entries first, and with its slower filter where too few of them match."""
    where = clauses(equal, contains)
    if where is not None and limit < OVERFETCHED:
        many = queried(collection, vector, OVERFETCHED, None)
        fitting = [found for found in many if matches(found[0], equal, contains)]
        if len(fitting) >= limit:
            return fitting[:limit]
    return queried(collection, vector, limit, where)


def queried(
    collection: Collection, vector: Vectors, limit: int, where: Where | None
) -> list[tuple[Entry, float]]:
    found = collection.query(
        query_embeddings=cast(PyEmbeddings, vector),
        n_results=limit,
        where=where,
        include=["metadatas", "documents", "distances"],
    )
    distances = (found["distances"] or [[]])[0]
    entries = rows(found["ids"][0], (found["documents"] or [[]])[0], (found["metadatas"] or [[]])[0])
    return [(entry, 1.0 - float(distance)) for entry, distance in zip(entries, distances, strict=True)]


def matches(entry: Entry, equal: Mapping[str, str], contains: Mapping[str, Sequence[str]]) -> bool:
    def listed(name: str) -> list[str]:
        found = entry.metadata.get(name)
        return found if isinstance(found, list) else []

    return all(entry.metadata.get(name) == value for name, value in equal.items()) and all(
        value in listed(name) for name, values in contains.items() for value in values
    )


def facets_of(entry: Entry) -> Facets:
    return {name: value for name, value in entry.metadata.items() if name != RECORD}


def read(collection: Collection, ids: Sequence[str]) -> list[Entry]:
    found = collection.get(ids=sorted(set(ids)), include=["metadatas", "documents"]) if ids else None
    return rows(found["ids"], found["documents"] or [], found["metadatas"] or []) if found is not None else []


def write(collection: Collection, entries: Sequence[Entry], vectors: Vectors) -> None:
    if entries:
        collection.upsert(
            ids=[entry.id for entry in entries],
            embeddings=cast(
                PyEmbeddings, vectors
            ),  # a matrix is taken as it is, though the types ask for lists
            documents=[entry.document for entry in entries],
            metadatas=[cast(Metadata, dict(entry.metadata)) for entry in entries],
        )


def rows(ids: Sequence[str], documents: Sequence[str], metadatas: Sequence[Metadata]) -> list[Entry]:
    rows = zip(ids, documents, metadatas, strict=True)
    return [Entry(i, document, cast(Mapping[str, MetadataValue], metadata)) for i, document, metadata in rows]


def read_pages(collection: Collection) -> Iterator[list[Entry]]:
    for offset in range(0, collection.count(), PAGE):
        found = collection.get(limit=PAGE, offset=offset, include=["metadatas", "documents"])
        yield rows(found["ids"], found["documents"] or [], found["metadatas"] or [])
