"""A candidate's family, laid out for drawing: ancestors in their generations, then its children. Not here: the drawing.

Invariant: at most `limit` candidates are laid out, the nearest ancestors and the fastest children; the rest is counted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Literal

from graph.shortfall import timing_of
from graph.summary import find_candidate, policy_hash
from memory.events import EvaluatedCandidate
from memory.records import Candidate, Run, Status
from memory.store import Store
from memory.store_family import Relative

DRAWN = 200
CHILDREN_DRAWN = 40
_REPAIR = re.compile(r"-r(\d+)$")


@dataclass(frozen=True)
class Kin:
    """One of the family, with its place in the drawing."""

    candidate: Candidate
    status: Status | None
    median_us: float | None
    gain: float | None
    """Its fastest parent's time over its own, or eager's for one without parents; None where either is unknown."""
    relation: Literal["ancestor", "itself", "child"]
    layer: int
    """From 0, the oldest; a repair has a layer of its own after what it mends."""
    place: float
    """Across the layer, 0 in its middle."""


@dataclass(frozen=True)
class Family:
    """Of one candidate."""

    chosen: EvaluatedCandidate
    kin: tuple[Kin, ...]
    """Oldest first; itself included."""
    links: tuple[tuple[str, str], ...]
    """(parent, child) where both are drawn."""
    ancestors: int
    """All that the store knows, drawn or not."""
    children: int

    @property
    def left_out(self) -> str:
        """A sentence on what is not drawn; empty where everything is."""
        drawn = [one.relation for one in self.kin]
        missing = [
            f"{count} {noun}"
            for count, noun in (
                (self.ancestors - drawn.count("ancestor"), "further ancestors, the most distant ones"),
                (self.children - drawn.count("child"), "further children, the slowest and the failed ones"),
            )
            if count > 0
        ]
        return f"Not drawn: {' and '.join(missing)}." if missing else ""


def family_of(run: Run, store: Store, name: str | None = None, *, limit: int = DRAWN) -> Family | None:
    """Of a candidate by its whole or short id; of the winner, the fastest or else the newest where none is named.

    None where the run has no candidate yet. Raises BadInput where it has none of that name.
    """
    judged_under = policy_hash(run)
    found = _chosen(run, store, name, judged_under)
    if found is None:
        return None
    chosen = found.candidate
    offspring, count = store.children(
        chosen.id, limit=min(limit // 2, CHILDREN_DRAWN), policy_hash=judged_under
    )
    ids = store.ancestor_ids(chosen.id, limit=limit - len(offspring))
    line = store.relatives(ids, policy_hash=judged_under)
    timing = timing_of(found)
    kin = _laid_out(chosen.id, line, offspring, timing.eager_us if timing else None)
    drawn = {one.candidate.id for one in kin}
    links = [
        (parent, one.candidate.id)
        for one in kin
        for parent in one.candidate.parents
        if parent in drawn and not (one.relation == "child" and parent != chosen.id)
    ]
    return Family(found, kin, tuple(links), store.ancestor_count(chosen.id), count)


def _chosen(run: Run, store: Store, name: str | None, judged_under: str) -> EvaluatedCandidate | None:
    wanted = name or run.best_candidate
    if wanted is None:
        best = store.best_candidate(run.id, policy_hash=judged_under)
        if best is not None:
            return best
        wanted = store.newest_candidate(run.id)
    return find_candidate(run, wanted, store) if wanted is not None else None


def _laid_out(
    chosen: str, line: Sequence[Relative], offspring: Sequence[Relative], eager_us: float | None
) -> tuple[Kin, ...]:
    ages = {relative.candidate.id: _age(relative.candidate) for relative in line}
    layers = {age: number for number, age in enumerate(sorted(set(ages.values())))}
    rows: dict[int, list[Relative]] = defaultdict(list)
    for relative in line:
        rows[layers[ages[relative.candidate.id]]].append(relative)
    if offspring:
        rows[len(layers)] = list(offspring)
    times = {r.candidate.id: r.median_us for r in (*line, *offspring) if r.median_us is not None}
    places: dict[str, float] = {}
    kin: list[Kin] = []
    for layer in sorted(rows):
        # Children near their parents, so that few lines cross.
        row = sorted(rows[layer], key=lambda relative: _pull(relative.candidate, places))
        for number, relative in enumerate(row):
            candidate = relative.candidate
            places[candidate.id] = number - (len(row) - 1) / 2
            kin.append(
                Kin(
                    candidate=candidate,
                    status=relative.status,
                    median_us=relative.median_us,
                    gain=_gain(relative, times, eager_us),
                    relation=_relation(candidate.id, chosen, ages),
                    layer=layer,
                    place=places[candidate.id],
                )
            )
    return tuple(kin)


def _relation(candidate_id: str, chosen: str, line: Container[str]) -> Literal["ancestor", "itself", "child"]:
    if candidate_id == chosen:
        return "itself"
    return "ancestor" if candidate_id in line else "child"


def _gain(relative: Relative, times: dict[str, float], eager_us: float | None) -> float | None:
    if not relative.median_us:
        return None
    parents = relative.candidate.parents
    before = [times[parent] for parent in parents if parent in times]
    base = min(before, default=None) if parents else eager_us
    return base / relative.median_us if base is not None else None


def _age(candidate: Candidate) -> tuple[int, int]:
    """(generation, number of the repair)."""
    repair = _REPAIR.search(candidate.id)
    return candidate.generation, int(repair[1]) if repair else 0


def _pull(candidate: Candidate, places: dict[str, float]) -> float:
    known = [places[parent] for parent in candidate.parents if parent in places]
    return sum(known) / len(known) if known else 0.0
