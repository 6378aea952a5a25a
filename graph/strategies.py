"""The choices that evolution makes, one small class each: who survives, who breeds, who migrates, what restarts. Pure.

Every stroke of luck is the given rng's, and every tie is broken by candidate id, so the same verdicts and seed make the
same choices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from agents.schemas import Member
from graph.behaviour import CellOf, elites

Rank = Callable[[Member], tuple[float, float, str]]
"""Sort key: fittest first."""
Islands = tuple[tuple[Member, ...], ...]
"""Members of every island, fittest first."""


def distinct(members: Sequence[Member], rank: Rank) -> list[Member]:
    """Those that passed, every program once, fittest first."""
    found: dict[str, Member] = {}
    for member in sorted(members, key=rank):
        if member.passed:
            found.setdefault(member.candidate.program_hash, member)
    return list(found.values())


class Survival(Protocol):
    """Who lives on. Every strategy keeps the fittest, so a best time is never lost."""

    def keep(self, members: Sequence[Member], size: int, rank: Rank) -> list[Member]:
        """At most `size` distinct members that passed, fittest first."""
        ...


@dataclass(frozen=True)
class Elitism:
    """The fittest."""

    def keep(self, members: Sequence[Member], size: int, rank: Rank) -> list[Member]:
        """See Survival."""
        return distinct(members, rank)[:size]


@dataclass(frozen=True)
class Niches:
    """The fittest for a share of the places; then the fittest of each cell that has none yet; then the next fittest."""

    cell: CellOf
    elite_share: float = 0.5

    def keep(self, members: Sequence[Member], size: int, rank: Rank) -> list[Member]:
        """See Survival."""
        ranked = distinct(members, rank)
        sure = min(size, max(1, round(size * self.elite_share)))
        # The fittest come first, so a cell that one of them holds already is not given another.
        order = [*ranked[:sure], *elites(ranked, self.cell), *ranked]
        kept = {id(member): member for member in order}
        return sorted(list(kept.values())[:size], key=rank)


class ParentChoice(Protocol):
    """Who breeds."""

    def choose(self, ranked: Sequence[Member], rng: Random) -> Member:
        """One of `ranked`, which is fittest first and not empty."""
        ...


@dataclass(frozen=True)
class Tournament:
    """The fittest of a few drawn at random."""

    size: int = 3

    def choose(self, ranked: Sequence[Member], rng: Random) -> Member:
        """See ParentChoice."""
        return ranked[min(rng.randrange(len(ranked)) for _ in range(self.size))]


@dataclass(frozen=True)
class Uniform:
    """Anyone: among the elites of unlike behaviour none is better than the next."""

    def choose(self, ranked: Sequence[Member], rng: Random) -> Member:
        """See ParentChoice."""
        return ranked[rng.randrange(len(ranked))]


class Migration(Protocol):
    """Who visits which island."""

    def arrivals(self, islands: Islands, generation: int) -> Islands:
        """Members that come to each island after a generation; they stay at home as well."""
        ...


@dataclass(frozen=True)
class Ring:
    """Every so many generations the fittest of each island visit the next one."""

    every: int = 5
    count: int = 2

    def arrivals(self, islands: Islands, generation: int) -> Islands:
        """See Migration."""
        if len(islands) < 2 or (generation + 1) % self.every:
            return ((),) * len(islands)
        return tuple(islands[index - 1][: self.count] for index in range(len(islands)))


class Restart(Protocol):
    """Which islands begin anew."""

    def stale(self, islands: Islands, quiet: Sequence[int], rank: Rank) -> frozenset[int]:
        """quiet: for each island, generations in a row without a gain."""
        ...


@dataclass(frozen=True)
class AfterQuiet:
    """Islands without a gain for so many generations; never the one that holds the fittest of all."""

    generations: int = 8

    def stale(self, islands: Islands, quiet: Sequence[int], rank: Rank) -> frozenset[int]:
        """See Restart."""
        best = [(rank(island[0]), index) for index, island in enumerate(islands) if island]
        home = min(best)[1] if best else None
        return frozenset(
            index for index, count in enumerate(quiet) if count >= self.generations and index != home
        )
