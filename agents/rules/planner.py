"""The planner by rules: recipes and recalled winners first, then children of those that breed on each island.

Here: what a generation is made of, and that no program is tried twice. Not here: how a child is made (operators), who
may breed (evolution, through the briefing).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from agents.rules.operators import GENTLE, USUAL, Child, Openings, replays
from agents.schemas import Briefing, Proposal

NEAR_ATTEMPTS = 5
"""Draws per slot that may give nothing new before it is taken that all near was tried; each costs a fifth of a
millisecond, and points afar are still to be had."""
AFAR_ATTEMPTS = 20
"""The same before slots are left empty."""


class RulesPlanner:
    """Plans without a model."""

    def plan(self, briefing: Briefing, rng: Random) -> Sequence[Proposal]:
        """Generation 0: the archive's winners, then every blueprint. Later: children of each island in turn."""
        openings = Openings(briefing)
        chosen: list[Proposal] = []
        tried = set(briefing.tried)
        for children, attempts in self._sources(openings, briefing, rng):
            misses = 0
            for child in children:
                if len(chosen) == briefing.slots or misses > attempts * briefing.slots:
                    break
                if child is None or (digest := child[1].content_hash()) in tried:
                    misses += 1
                    continue
                tried.add(digest)
                name = f"{briefing.scene.generation:03d}-{len(chosen):03d}"
                chosen.append(child[0].model_copy(update={"id": name}))
        return chosen

    def _sources(
        self, openings: Openings, briefing: Briefing, rng: Random
    ) -> list[tuple[Iterator[Child | None], int]]:
        """What to draw from, with the draws per slot that may give nothing new; the next one follows then."""
        near = self._children(openings, briefing, rng)
        if briefing.gentle:
            return [(near, AFAR_ATTEMPTS)]
        afar = _in_turn([openings.anew(island, rng) for island in range(briefing.breeding.islands)])
        return [(near, NEAR_ATTEMPTS), (afar, AFAR_ATTEMPTS)]

    def _children(self, openings: Openings, briefing: Briefing, rng: Random) -> Iterator[Child | None]:
        if briefing.scene.generation == 0:
            for number, (proposal, program) in enumerate(openings.first(rng)):
                yield proposal.model_copy(update={"island": number % briefing.breeding.islands}), program
            return
        if not briefing.gentle:
            yield from replays(briefing.population, briefing)
        islands = range(briefing.breeding.islands)
        peopled = [island for island in islands if not briefing.breeding.restarts(island)]
        # What begins anew is no small step, so a gentle generation leaves it for later.
        yield from _in_turn(
            [
                self._born(island, briefing, rng) if island in peopled else openings.anew(island, rng)
                for island in (peopled if briefing.gentle and peopled else islands)
            ]
        )

    def _born(self, island: int, briefing: Briefing, rng: Random) -> Iterator[Child | None]:
        """Without an end; None for a draw that gave no child."""
        operators = GENTLE if briefing.gentle else USUAL
        while (parent := briefing.breeding.parent(island, rng, gentle=briefing.gentle)) is not None:
            yield operators.choose(rng).child(parent, island, briefing, rng)


def _in_turn(sources: list[Iterator[Child | None]]) -> Iterator[Child | None]:
    """One from each, again and again, until all have ended."""
    while sources:
        for source in list(sources):
            try:
                child = next(source)
            except StopIteration:
                sources.remove(source)
                continue
            yield child
