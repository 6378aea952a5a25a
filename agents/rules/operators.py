"""How the rules make children: a step in the tunables, a crossover, a replay, a recipe anew, a winner of the archive.

Here: what each operator makes of the parents it is given, and which one is taken. Not here: who the parents are (the
briefing's Breeding), how tunables move (tuner), which programs were tried before (planner). Pure but for the rng.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Protocol

from agents.rules import tuner
from agents.schemas import Briefing, Member, Move, Neighbour, Proposal
from memory.errors import WarpsmithError
from memory.records import Program
from memory.signature import problem_operations
from tools.program import validate
from tools.recipes.blueprints import Blueprint, built
from tools.roofline import Demand, demand, eager_times

Child = tuple[Proposal, Program]
"""A proposal, its id still empty, and the program that will come of it."""


class Operator(Protocol):
    """One way to make a child of a parent."""

    def child(self, parent: Member, island: int, briefing: Briefing, rng: Random) -> Child | None:
        """None where this parent allows none."""
        ...


@dataclass(frozen=True)
class Tune:
    """Tunables moved: one by a step where `gentle`, else up to three anywhere."""

    gentle: bool = False

    def child(self, parent: Member, island: int, briefing: Briefing, rng: Random) -> Child | None:
        """See Operator."""
        values = tuner.mutate(parent.program, rng, gentle=self.gentle)
        return _varied(Move.TUNE, (parent,), values, island, briefing)


@dataclass(frozen=True)
class Cross:
    """Tunables of two parents of one source mixed."""

    def child(self, parent: Member, island: int, briefing: Briefing, rng: Random) -> Child | None:
        """See Operator."""
        mate = briefing.breeding.mate(parent, island, rng)
        if mate is None:
            return None
        values = tuner.cross(parent.program, mate.program, rng)
        return _varied(Move.CROSS, (parent, mate), values, island, briefing)


@dataclass(frozen=True)
class Weighted:
    """The operator of a child, drawn by weight."""

    operators: tuple[tuple[Operator, float], ...]

    def choose(self, rng: Random) -> Operator:
        """One of the operators."""
        (chosen,) = rng.choices([o for o, _ in self.operators], [weight for _, weight in self.operators])
        return chosen


USUAL = Weighted(((Tune(), 0.7), (Cross(), 0.3)))
GENTLE = Weighted(((Tune(gentle=True), 1.0),))


def _varied(
    move: Move, parents: tuple[Member, ...], values: dict[str, int], island: int, briefing: Briefing
) -> Child | None:
    if not values:
        return None
    first = parents[0]
    profile = first.evaluation.profile
    if profile is None:
        raise WarpsmithError(f"candidate {first.candidate.id} passed and has no profile")
    verb = "tune" if move is Move.TUNE else "mix in"
    proposal = Proposal(
        id="",
        generation=briefing.scene.generation,
        island=island,
        move=move,
        idea=f"{verb} {tuner.describe(values)} of {first.candidate.id}",
        bottleneck=profile.bottleneck,
        parents=tuple(m.candidate.id for m in parents),
        values=values,
    )
    return proposal, first.program.with_values(values)


def replays(population: Sequence[Member], briefing: Briefing) -> Iterator[Child]:
    """Survivors that wait for their launches, as CUDA graphs."""
    for member in population:
        profile = member.evaluation.profile
        if profile is None or profile.bottleneck != "launch" or member.program.replay:
            continue
        proposal = Proposal(
            id="",
            generation=briefing.scene.generation,
            island=member.candidate.island,
            move=Move.REPLAY,
            idea=f"Replay the steps of {member.candidate.id} as one CUDA graph",
            bottleneck="launch",
            parents=(member.candidate.id,),
        )
        yield proposal, member.program.model_copy(update={"replay": True})


@dataclass(frozen=True)
class Openings:
    """Where an island begins: the archive's winners for the same operations, the recipes' blueprints, and points
    further away of both."""

    briefing: Briefing

    @cached_property
    def _built(self) -> list[tuple[Blueprint, Program]]:
        scene = self.briefing.scene
        every = built(scene.problem, scene.twin)
        # A layout may need more shared memory than this GPU has. Where nothing is valid the library plan is proposed
        # all the same: its verdict says what cannot be expressed.
        return [(w, p) for w, p in every if is_valid(p, self.briefing)] or list(every[-1:])

    @cached_property
    def _plain(self) -> list[Child]:
        """Winners that fit, then every blueprint, as they are."""
        recalled = [self._recall(n) for n in self.briefing.neighbours if fits(n, self.briefing)]
        return recalled + [(self._seed(way, {}), program) for way, program in self._built]

    @cached_property
    def _eager(self) -> Demand:
        """What eager PyTorch needs, modelled."""
        return demand(eager_times(self.briefing.scene.problem.graph, self.briefing.scene.gpu))

    def first(self, rng: Random) -> Iterator[Child]:
        """For generation 0: each as it is, then other points of the blueprints, the most promising one first."""
        yield from self._plain
        tunable = [(way, program) for way, program in self._built if program.tunables]
        while tunable:
            way, program = tunable[min(int(rng.expovariate(1.0)), len(tunable) - 1)]
            values = tuner.mutate(program, rng, gentle=False)
            if not values:
                return
            yield self._seed(way, values), program.with_values(values)

    def anew(self, island: int, rng: Random) -> Iterator[Child]:
        """For an island that restarts: each as it is where it was not tried, then points far away, whichever."""
        for proposal, program in self._plain:
            yield proposal.model_copy(update={"island": island}), program
        tunable = [(proposal, program) for proposal, program in self._plain if program.tunables]
        while tunable:
            proposal, program = rng.choice(tunable)
            values = tuner.scatter(program, rng)
            if not values:
                return
            idea = f"{proposal.idea.partition('; ')[0]} (at {tuner.describe(values)})"
            moved = proposal.model_copy(update={"values": values, "idea": idea, "island": island})
            yield moved, program.with_values(values)

    def _recall(self, neighbour: Neighbour) -> Child:
        proposal = Proposal(
            id="",
            generation=self.briefing.scene.generation,
            move=Move.RECALL,
            idea=neighbour.innovation.idea,
            bottleneck="memory",
            innovation=neighbour.id,
        )
        return proposal, neighbour.innovation.program

    def _seed(self, way: Blueprint, values: dict[str, int]) -> Proposal:
        at, eager = f" (at {tuner.describe(values)})" if values else "", self._eager
        saved = (
            f"; eager is host-bound: its operations take {eager.host_us:,.0f} µs to issue and "
            f"{eager.device_us:,.0f} µs to run (modelled)"
        )
        return Proposal(
            id="",
            generation=self.briefing.scene.generation,
            move=Move.SEED,
            idea=f"{way.idea.rstrip('.')}{at}{saved if eager.host_bound else ''}",
            bottleneck="launch" if eager.host_bound else "memory",
            blueprint=way.name,
            values=values,
        )


def fits(neighbour: Neighbour, briefing: Briefing) -> bool:
    """True where the innovation came from the same operations and its program is valid for this problem and its twin.

    A program made for other operations can be valid by accident of names and shapes, and is then merely wrong; one that
    a person chose is tried all the same.
    """
    alike = neighbour.innovation.operations == problem_operations(briefing.scene.problem)
    if not (alike or neighbour.chosen):
        return False
    return is_valid(neighbour.innovation.program, briefing)


def is_valid(program: Program, briefing: Briefing) -> bool:
    """True where nothing is wrong with the program, neither at the problem's shapes nor at its twin's."""
    problems = [p for p in (briefing.scene.problem, briefing.scene.twin) if p is not None]
    return not any(validate(program, problem, briefing.scene.gpu)[1] for problem in problems)
