"""What a run's earlier generations and the archive say to its agents, read once and not by every branch.

Here: reading and remembering. Not here: what follows from it (graph.learning, agents.novelty). Invariant: the past of a
generation is fixed once that generation has begun, so that whichever branch asks first may read it for all.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agents.novelty import fingerprint
from agents.schemas import ArmOutcome, Failure, Neighbour, Recalled
from graph.learning import arm_outcomes, failures
from memory.archive import Archive
from memory.records import Innovation
from memory.store import Store


@dataclass(frozen=True)
class Earlier:
    """What the generations before one have left."""

    failures: tuple[Failure, ...] = ()
    known: Mapping[str, str] = field(default_factory=dict)
    """Fingerprint -> the first candidate of it."""
    outcomes: tuple[ArmOutcome, ...] = ()


class Past:
    """Of one run. Threads may share it."""

    def __init__(self, store: Store, archive: Archive, run_id: str) -> None:
        self._store = store
        self._archive = archive
        self._run_id = run_id
        self._lock = threading.Lock()
        self._newest: tuple[int, Earlier] | None = None
        self._fingerprints: dict[str, str] = {}
        self._tried: dict[str, int] = {}
        """Program hash -> the first generation that has it."""
        self._read_up_to = 0
        self._innovations: dict[str, Innovation | None] = {}

    def before(self, generation: int) -> Earlier:
        """What the generations before this one have left; the last one asked for is remembered."""
        with self._lock:
            if self._newest is None or self._newest[0] != generation:
                self._newest = generation, self._read(generation)
            return self._newest[1]

    def tried(self, generation: int) -> frozenset[str]:
        """Hashes of the programs of earlier generations. Only candidates that are new since are read."""
        with self._lock:
            for number, found_in, digest in self._store.proposed(self._run_id, after=self._read_up_to):
                self._read_up_to = number
                self._tried[digest] = min(found_in, self._tried.get(digest, found_in))
            return frozenset(digest for digest, first in self._tried.items() if first < generation)

    def neighbours(self, recalled: Sequence[Recalled]) -> tuple[Neighbour, ...]:
        """What was recalled, as far as the archive had it when it was first asked."""
        with self._lock:
            for found in recalled:
                if found.id not in self._innovations:
                    self._innovations[found.id] = self._archive.get(found.id)
            had = [(r, self._innovations[r.id]) for r in recalled]
        return tuple(
            Neighbour(r.id, innovation, r.similarity, r.chosen) for r, innovation in had if innovation
        )

    def _read(self, generation: int) -> Earlier:
        rows = self._store.evaluated(self._run_id)
        earlier = [row.candidate for row in rows if row.candidate.generation < generation]
        return Earlier(
            failures=failures(rows, generation),
            known={self._fingerprint(c.program_hash): c.id for c in reversed(earlier)},
            outcomes=arm_outcomes(rows, self._store.events(self._run_id), generation),
        )

    def _fingerprint(self, program_hash: str) -> str:
        if program_hash not in self._fingerprints:
            self._fingerprints[program_hash] = fingerprint(self._store.program(program_hash))
        return self._fingerprints[program_hash]
