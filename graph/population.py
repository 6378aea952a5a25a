"""The population between state and evolution: members for ids, and one generation's step with what people said.

Here: what a step needs from the store. Not here: the choices themselves (graph.evolution, graph.rollback).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.schemas import Member
from graph.context import RunContext
from graph.evolution import World
from graph.oversight import MARKS
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
    return _world(state, context, killed(context))


def _world(state: RunState, context: RunContext, gone: frozenset[str]) -> World:
    if not state.islands:
        return World.empty(context.evolution.islands)
    world = World(
        islands=tuple(_members(island, context) for island in state.islands),
        quiet=tuple(state.quiet),
        elites=_members(state.elites, context),
    )
    return world.without(gone)


def step(state: RunState, context: RunContext) -> Step:
    """Take in the generation that was judged, or return to the last good one."""
    generation, marks = _members(state.evaluated, context), _marks(context)
    world = _world(state, context, marks[Verdict.KILLED])
    found = course(generation, gentle=state.gentle, good=state.good)
    born = [m for m in generation if m.candidate.id not in marks[Verdict.KILLED]]
    if found is not Course.ONWARD and state.good:
        # What was verified and is faster than all before is kept: that others failed takes nothing from it.
        before = context.evolution.population(world)
        born = [m for m in born if m.passed and (not before or _fitter(m, before[0], context))]
    children = [(min(m.candidate.island, len(world.islands) - 1), m) for m in born]
    grown = context.evolution.advance(world, children, state.generation, pinned=marks[Verdict.PINNED])
    return Step(grown, context.evolution.population(grown), found)


def _fitter(member: Member, best: Member, context: RunContext) -> bool:
    rank = context.evolution.fitness.rank
    return rank(member) < rank(best)


def killed(context: RunContext) -> frozenset[str]:
    """Candidates that a person took out."""
    return _marks(context)[Verdict.KILLED]


def _marks(context: RunContext) -> dict[Verdict, frozenset[str]]:
    """For each mark, the candidates on which it is a person's last one."""
    last = {
        review.candidate_id: review.verdict
        for review in context.store.reviews_of_run(context.run.id)
        if review.verdict in MARKS
    }
    return {mark: frozenset(id_ for id_, said in last.items() if said is mark) for mark in MARKS}


def _members(ids: Sequence[str], context: RunContext) -> tuple[Member, ...]:
    return tuple(context.member(id_) for id_ in ids)


def _ids(members: Sequence[Member]) -> list[str]:
    return [m.candidate.id for m in members]
