"""The population between state and evolution: members for ids, and one generation's step with what people said.

Here: what a step needs from the store. Not here: the choices themselves (graph.evolution, graph.rollback).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.schemas import Member
from graph.context import RunContext
from graph.evolution import World
from graph.rollback import Course, course
from graph.state import RunState, Update
from memory.events import Verdict


@dataclass(frozen=True)
class Step:
    """What a generation left."""

    world: World
    population: list[Member]
    course: Course

    def update(self) -> Update:
        """As the state keeps it."""
        return {
            "population": _ids(self.population),
            "islands": [_ids(island) for island in self.world.islands],
            "quiet": list(self.world.quiet),
            "elites": _ids(self.world.elites),
            "gentle": self.course is not Course.ONWARD,
        }


def world_of(state: RunState, context: RunContext) -> World:
    """The population that a state names, less what was killed since; see graph.evolution."""
    if not state.islands:
        return World.empty(context.evolution.islands)
    world = World(
        islands=tuple(_members(island, context) for island in state.islands),
        quiet=tuple(state.quiet),
        elites=_members(state.elites, context),
    )
    return world.without(killed(context))


def step(state: RunState, context: RunContext) -> Step:
    """Take in the generation that was judged, or return to the last good one."""
    generation = _members(state.evaluated, context)
    gone, pinned = killed(context), marked(context, Verdict.PINNED)
    world = world_of(state, context)
    found = course(generation, gentle=state.gentle, good=state.good)
    born = [m for m in generation if m.candidate.id not in gone]
    if found is not Course.ONWARD and state.good:
        # What was verified and is faster than all before is kept: that others failed takes nothing from it.
        before = context.evolution.population(world)
        born = [m for m in born if m.passed and (not before or _fitter(m, before[0], context))]
    children = [(min(m.candidate.island, len(world.islands) - 1), m) for m in born]
    grown = context.evolution.advance(world, children, state.generation, pinned=pinned)
    return Step(grown, context.evolution.population(grown), found)


def _fitter(member: Member, best: Member, context: RunContext) -> bool:
    rank = context.evolution.fitness.rank
    return rank(member) < rank(best)


def killed(context: RunContext) -> frozenset[str]:
    """Candidates that a person took out."""
    return marked(context, Verdict.KILLED)


def marked(context: RunContext, verdict: Verdict) -> frozenset[str]:
    """Candidates of which a person's last word, of those that mark one, is this."""
    last = {
        review.candidate_id: review.verdict
        for review in context.store.reviews_of_run(context.run.id)
        if review.verdict in (Verdict.PINNED, Verdict.KILLED, Verdict.RELEASED)
    }
    return frozenset(candidate for candidate, said in last.items() if said is verdict)


def _members(ids: Sequence[str], context: RunContext) -> tuple[Member, ...]:
    return tuple(context.member(id_) for id_ in ids)


def _ids(members: Sequence[Member]) -> list[str]:
    return [m.candidate.id for m in members]
