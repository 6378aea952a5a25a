"""Evolution of a population on islands. Pure: members in, members out; what is drawn, the given rng draws.

Here: fitness, one generation's step, and who may breed. Not here: the single choices (graph.strategies), where a
program lies in the grid (graph.behaviour), how children are made (agents.rules.operators).
Invariants: the fittest member is never lost; a failing candidate outranks no passing one; ties are broken by candidate
id, so the same verdicts give the same survivors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from agents.schemas import Member
from graph.behaviour import CellOf, elites
from graph.strategies import (
    AfterQuiet,
    Elitism,
    Islands,
    Migration,
    Niches,
    ParentChoice,
    Restart,
    Ring,
    Survival,
    Tournament,
    Uniform,
    distinct,
)
from memory.records import Evaluation, Stage

GAIN = 0.01
"""A best time counts as a gain where it is at least this share faster."""
ELITE_SHARE = 0.2
"""Of the parents: drawn from the whole grid instead of from the child's island."""
FAILING_CREDIT = 0.9
"""Of a pass, for a candidate that failed in the last stage."""

_STAGES = tuple(Stage)


@dataclass(frozen=True)
class Fitness:
    """correctness * how far it came + performance * the share of the floor that it reached, from 0 to their sum.

    The weights 0.7 and 0.3 are the requirements'. A failing candidate has the credit of the stages it passed, at most
    0.9 of correctness, and so outranks no passing one while that weight is above 0.
    """

    correctness: float = 0.7
    performance: float = 0.3

    def of(self, evaluation: Evaluation) -> float:
        """Fitness of a verdict."""
        timing = evaluation.timing
        if timing is None:
            return self.of_failure(evaluation.stage)
        return self.of_time(timing.median_us, timing.floor_us)

    def of_failure(self, stage: Stage) -> float:
        """Of a verdict that failed in this stage."""
        return self.correctness * FAILING_CREDIT * _STAGES.index(stage) / len(_STAGES)

    def of_time(self, median_us: float, floor_us: float) -> float:
        """Of a verdict that passed in this time."""
        return self.correctness + self.performance * min(floor_us / median_us, 1.0)

    def rank(self, member: Member) -> tuple[float, float, str]:
        """Sort key: fittest first, then fastest (fitness cannot tell where the floor is 0), then by id."""
        timing = member.evaluation.timing
        return -self.of(member.evaluation), timing.median_us if timing else float("inf"), member.candidate.id


@dataclass(frozen=True)
class World:
    """A population between two generations."""

    islands: Islands
    quiet: tuple[int, ...]
    """For each island, generations in a row without a gain."""
    elites: tuple[Member, ...] = ()
    """The fittest of every cell of the grid, over all islands and generations."""
    restarted: frozenset[int] = frozenset()
    """Islands that were emptied and begin anew."""

    @staticmethod
    def empty(islands: int) -> World:
        """Before generation 0."""
        return World(((),) * islands, (0,) * islands)

    def without(self, gone: frozenset[str]) -> World:
        """Less the candidates of these ids."""

        def left(members: Sequence[Member]) -> tuple[Member, ...]:
            return tuple(m for m in members if m.candidate.id not in gone)

        return World(tuple(map(left, self.islands)), self.quiet, left(self.elites), self.restarted)


@dataclass(frozen=True)
class Evolution:
    """The strategies of a run."""

    size: int
    """Members at most, over all islands."""
    islands: int
    cell: CellOf
    fitness: Fitness = Fitness()
    survival: Survival = field(default_factory=Elitism)
    parents: ParentChoice = field(default_factory=Tournament)
    explorers: ParentChoice = field(default_factory=Uniform)
    """Who breeds among the elites."""
    migration: Migration = field(default_factory=Ring)
    restart: Restart = field(default_factory=AfterQuiet)

    @staticmethod
    def usual(
        size: int, islands: int, cell: CellOf, fitness: Fitness, *, migrate_every: int, restart_after: int
    ) -> Evolution:
        """The strategies that runs use."""
        return Evolution(
            size, islands, cell, fitness, survival=Niches(cell), migration=Ring(migrate_every),
            restart=AfterQuiet(restart_after),
        )  # fmt: skip

    @property
    def island_size(self) -> int:
        """Members of one island at most."""
        return -(-self.size // self.islands)

    def advance(
        self,
        world: World,
        children: Sequence[tuple[int, Member]],
        generation: int,
        *,
        pinned: frozenset[str] = frozenset(),
    ) -> World:
        """One generation: select on each island, migrate, restart what is stale, and renew the elites.

        children: (island, member) of every judged candidate. pinned: ids that stay, however they rank.
        """
        grown = [self._selected(world, children, index, pinned) for index in range(self.islands)]
        quiet = [
            0 if gained(before, after) else count + 1
            for before, after, count in zip(world.islands, grown, world.quiet, strict=True)
        ]
        arrivals = self.migration.arrivals(tuple(grown), generation)
        settled = tuple(
            tuple(self._kept([*island, *visitors], pinned)) if visitors else island
            for island, visitors in zip(grown, arrivals, strict=True)
        )
        stale = self.restart.stale(settled, quiet, self.fitness.rank)
        return World(
            islands=tuple(
                tuple(m for m in island if m.candidate.id in pinned) if index in stale else island
                for index, island in enumerate(settled)
            ),
            quiet=tuple(0 if index in stale else count for index, count in enumerate(quiet)),
            elites=self._elites([*world.elites, *(member for _, member in children)]),
            restarted=stale,
        )

    def _selected(
        self, world: World, children: Sequence[tuple[int, Member]], index: int, pinned: frozenset[str]
    ) -> tuple[Member, ...]:
        born = [member for island, member in children if island == index]
        return tuple(self._kept([*world.islands[index], *born], pinned))

    def _kept(self, members: Sequence[Member], pinned: frozenset[str]) -> list[Member]:
        kept = self.survival.keep(members, self.island_size, self.fitness.rank)
        held = {m.candidate.id for m in kept}
        saved = [m for m in members if m.candidate.id in pinned - held and m.passed]
        return sorted([*kept, *saved], key=self.fitness.rank)

    def _elites(self, members: Sequence[Member]) -> tuple[Member, ...]:
        return tuple(elites(distinct(members, self.fitness.rank), self.cell))

    def population(self, world: World) -> list[Member]:
        """Every distinct program of the islands, fittest first, at most `size`."""
        everyone = [member for island in world.islands for member in island]
        return distinct(everyone, self.fitness.rank)[: self.size]

    def herd(self, world: World) -> Herd:
        """Who may breed now."""
        return Herd(world, self.parents, self.explorers)


@dataclass(frozen=True)
class Herd:
    """Who may breed: agents.schemas.Breeding."""

    world: World
    parents: ParentChoice = field(default_factory=Tournament)
    explorers: ParentChoice = field(default_factory=Uniform)

    @property
    def islands(self) -> int:
        """See agents.schemas.Breeding."""
        return len(self.world.islands)

    def restarts(self, island: int) -> bool:
        """See agents.schemas.Breeding."""
        return not self._breeders(island)

    def parent(self, island: int, rng: Random, *, gentle: bool) -> Member | None:
        """See agents.schemas.Breeding."""
        own = self._breeders(island)
        afar = [m for m in self.world.elites if m.program.tunables]
        if not own:
            return None
        if afar and not gentle and rng.random() < ELITE_SHARE:
            return self.explorers.choose(afar, rng)
        return self.parents.choose(own, rng)

    def mate(self, first: Member, island: int, rng: Random) -> Member | None:
        """See agents.schemas.Breeding."""
        fitting = [
            m
            for m in self._breeders(island)
            if m.candidate.id != first.candidate.id and m.program.source == first.program.source
        ]
        return rng.choice(fitting) if fitting else None

    def _breeders(self, island: int) -> list[Member]:
        return [m for m in self.world.islands[island] if m.program.tunables]


def gained(before: Sequence[Member], after: Sequence[Member]) -> bool:
    """True where the best time fell by at least GAIN."""
    old, new = _best_us(before), _best_us(after)
    return new is not None and (old is None or new < old * (1 - GAIN))


def _best_us(members: Sequence[Member]) -> float | None:
    times = [m.evaluation.timing.median_us for m in members if m.evaluation.timing is not None]
    return min(times) if times else None
