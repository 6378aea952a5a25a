"""An innovation as the archive files it: id, text, metadata, rank, and the filters and sums over these.

Here: pure functions and small records. Not here: the vector store (`memory.archive`).
Invariants: one entry per program, problem and architecture, and of two the better verified one stays; a record of
another schema version or one that fails validation is refused, never guessed at.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import AfterValidator, ValidationError

from memory.embedding import canonical_word
from memory.errors import ArchiveError
from memory.records import SCHEMA_VERSION, DType, Innovation, Record

SOURCE_HEAD = 1500
"""Characters of a kernel's source that take part in retrieval."""

LONGEST_SOURCE = 1 << 20
LONGEST_TEXT = 1 << 16
"""Characters that an imported innovation may have."""

CODE_BELOW = "---- source ----"


@dataclass(frozen=True)
class ArchiveFilter:
    """What a hit must have; None and empty mean anything."""

    operations: tuple[str, ...] = ()
    """All of these, in any spelling of `memory.embedding.SYNONYMS`."""
    dtype: DType | None = None
    arch: str | None = None
    time_source: Literal["measured", "modelled"] | None = None
    verification: Literal["trials", "soak", "refuted"] | None = None
    origin: Literal["run", "import"] | None = None

    def equalities(self) -> dict[str, str]:
        """Metadata fields and the values that they must have."""
        wanted = {
            "dtype": self.dtype.value if self.dtype else None,
            "arch": self.arch,
            "time_source": self.time_source,
            "verification": self.verification,
            "origin": self.origin,
        }
        return {name: value for name, value in wanted.items() if value is not None}

    def members(self) -> tuple[str, ...]:
        """Canonical operations that must be among an entry's."""
        return tuple(dict.fromkeys(canonical_word(operation) for operation in self.operations))


@dataclass(frozen=True)
class Hit:
    """An innovation that a search found."""

    id: str
    innovation: Innovation
    similarity: float
    """Cosine, -1 to 1."""


@dataclass(frozen=True)
class AddCounts:
    """What became of the innovations given to the archive."""

    added: int = 0
    replaced: int = 0
    kept: int = 0
    """Already there, with a time at least as good."""


@dataclass(frozen=True)
class Refused:
    """A line that an import left out."""

    line: int
    """From 1."""
    why: str


@dataclass(frozen=True)
class ImportReport:
    """What became of a file's lines."""

    counts: AddCounts
    refused: tuple[Refused, ...]


@dataclass
class ArchiveStats:
    """How many entries the archive has, in total and by what they are."""

    total: int = 0
    refused: int = 0
    """Entries of another schema version: in the total only, and left out of searches."""
    by_operation: Counter[str] = field(default_factory=Counter)
    by_dtype: Counter[str] = field(default_factory=Counter)
    by_arch: Counter[str] = field(default_factory=Counter)
    by_time_source: Counter[str] = field(default_factory=Counter)
    by_verification: Counter[str] = field(default_factory=Counter)
    by_origin: Counter[str] = field(default_factory=Counter)

    def count(self, metadata: Mapping[str, object]) -> None:
        """Add one entry to the sums, by its metadata."""
        self.total += 1
        if metadata.get("schema_version") != SCHEMA_VERSION:
            self.refused += 1
            return
        operations = metadata.get("operations")
        self.by_operation.update(operations if isinstance(operations, list) else [])
        self.by_dtype[str(metadata.get("dtype"))] += 1
        self.by_arch[str(metadata.get("arch"))] += 1
        self.by_time_source[str(metadata.get("time_source"))] += 1
        self.by_verification[str(metadata.get("verification"))] += 1
        self.by_origin[str(metadata.get("origin"))] += 1


def _this_version(version: int) -> int:
    if version != SCHEMA_VERSION:
        raise ValueError(f"written under schema version {version}; this Warpsmith reads {SCHEMA_VERSION}")
    return version


class StoredInnovation(Record):
    """The form in which an innovation is kept and passed between archives: one line of JSON."""

    schema_version: Annotated[int, AfterValidator(_this_version)]
    innovation: Innovation


def innovation_id(innovation: Innovation) -> str:
    """The entry's id: a hash of program, problem and architecture, which one entry stands for."""
    parts = (innovation.program.content_hash(), innovation.problem_hash, innovation.arch)
    return hashlib.sha256("\n".join(("Innovation", str(SCHEMA_VERSION), *parts)).encode()).hexdigest()


def to_line(innovation: Innovation) -> str:
    """The innovation as one line of JSON. Raises ArchiveError where it is not valid."""
    try:
        # Validated again: `model_copy` and `model_construct` do not.
        checked = Innovation.model_validate(innovation.model_dump())
    except ValidationError as error:
        raise ArchiveError(f"innovation {innovation.idea!r} is refused, correct it first: {error}") from error
    return StoredInnovation(schema_version=SCHEMA_VERSION, innovation=checked).model_dump_json()


def from_line(line: str) -> Innovation:
    """The innovation in one line of JSON. Raises ArchiveError for another schema version or an invalid record."""
    try:
        return StoredInnovation.model_validate_json(line).innovation
    except ValidationError as error:
        raise ArchiveError(f"an innovation is refused; archive it again from its run: {error}") from error


def imported(line: str) -> Innovation:
    """The innovation in a line of another archive, marked as unchecked. Raises ArchiveError where it is refused.

    Its figures must be possible: a claim is not believed for being written down.
    """
    found = from_line(line)
    origin = found.provenance
    for name, value in (("best_us", found.best_us), ("speedup", found.speedup)):
        if not value > 0:
            raise ArchiveError(f"an innovation is refused: {name} is {value!r}, not above 0")
    if len(found.program.source) > LONGEST_SOURCE or len(found.signature) + len(found.idea) > LONGEST_TEXT:
        raise ArchiveError("an innovation is refused: its texts are longer than any that Warpsmith writes")
    # Nor do its attempts: they would keep this machine from trying.
    return found.model_copy(
        update={"provenance": origin.model_copy(update={"origin": "import", "attempts": {}})}
    )


def document_of(innovation: Innovation) -> str:
    """The text that stands for the innovation: signature, idea, techniques, then the head of its source."""
    words = (innovation.signature, innovation.idea, ", ".join(innovation.techniques))
    return "\n".join((*words, CODE_BELOW, innovation.program.source[:SOURCE_HEAD]))


def description_and_code(document: str) -> tuple[str, str]:
    """The two parts of a document."""
    words, _, code = document.partition(f"\n{CODE_BELOW}\n")
    return words, code


def canonical_operations(innovation: Innovation) -> list[str]:
    """The problem's operations in canonical spelling, each once."""
    return list(dict.fromkeys(canonical_word(operation) for operation in innovation.operations))


def metadata_of(innovation: Innovation) -> dict[str, str | int | float | list[str]]:
    """What the vector store may filter by; empty lists are left out, as Chroma refuses them."""
    origin = innovation.provenance
    fields: dict[str, str | int | float | list[str]] = {
        "schema_version": SCHEMA_VERSION,
        "problem_hash": innovation.problem_hash,
        "problem_name": innovation.problem_name,
        "program_hash": innovation.program.content_hash(),
        "operations": canonical_operations(innovation),
        "techniques": list(innovation.techniques),
        "dtype": innovation.dtype.value,
        "arch": innovation.arch,
        "best_us": innovation.best_us,
        "speedup": innovation.speedup,
        "floor_fraction": innovation.floor_fraction,
        "verification": innovation.verification,
        "time_source": origin.time_source,
        "device": origin.device,
        "run_id": origin.run_id,
        "created": origin.created,
        "trials": origin.trials,
        "origin": origin.origin,
        "driver": origin.driver,
    }
    return {name: value for name, value in fields.items() if value != []}


def better(new: Innovation, old: Innovation) -> bool:
    """True where `new` should take the place of `old`, the same program on the same problem and architecture.

    What was verified here beats an import and what was refuted, a measured time a modelled one, a soak trials; then the
    lower time wins.
    """
    return _rank(new) < _rank(old)


def _rank(innovation: Innovation) -> tuple[bool, bool, bool, bool, float]:
    modelled = innovation.provenance.time_source == "modelled"
    refuted = innovation.verification == "refuted"
    return (
        refuted,
        innovation.provenance.origin == "import",
        modelled,
        innovation.verification != "soak",
        innovation.best_us,
    )
