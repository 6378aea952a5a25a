"""The planner by rules: recipes and recalled winners first, then the tunables of the best survivors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from agents.rules import tuner
from agents.schemas import Briefing, Member, Move, Neighbour, Proposal
from memory.errors import WarpsmithError
from memory.records import Program
from memory.signature import problem_operations
from tools.program import validate
from tools.recipes.blueprints import Blueprint, blueprints, build
from tools.roofline import demand, eager_times

ATTEMPTS_PER_SLOT = 20
"""Draws before a slot is left empty because everything nearby was tried."""
TOURNAMENT = 3
CROSS_SHARE = 0.3


class RulesPlanner:
    """Plans without a model."""

    def plan(self, briefing: Briefing, rng: Random) -> Sequence[Proposal]:
        """Generation 0: the archive's winners, then every blueprint. Later: tune and cross the survivors."""
        chosen: list[Proposal] = []
        tried = set(briefing.tried)
        source = _openings(briefing, rng) if briefing.scene.generation == 0 else _variations(briefing, rng)
        misses = 0
        for proposal, program in source:
            digest = program.content_hash()
            if digest in tried:
                misses += 1
                if misses > ATTEMPTS_PER_SLOT * briefing.slots:
                    break
                continue
            tried.add(digest)
            chosen.append(
                proposal.model_copy(update={"id": f"{briefing.scene.generation:03d}-{len(chosen):03d}"})
            )
            if len(chosen) == briefing.slots:
                break
        return chosen


_Planned = tuple[Proposal, Program]


def _openings(briefing: Briefing, rng: Random) -> Iterator[_Planned]:
    for neighbour in briefing.neighbours:
        if fits(neighbour, briefing):
            yield _recall(neighbour, briefing), neighbour.innovation.program
    ways = blueprints(briefing.scene.problem, briefing.scene.twin)
    built = [(way, build(briefing.scene.problem, way, briefing.scene.twin)) for way in ways]
    # A layout may need more shared memory than this GPU has. Where nothing is valid the library plan is proposed all
    # the same: its verdict says what cannot be expressed.
    programs = [(w, p) for w, p in built if _is_valid(p, briefing)] or built[-1:]
    for way, program in programs:
        yield _seed(way, briefing, {}), program
    # Slots left over go to other points of the same blueprints, the most promising one first.
    tunable = [(way, program) for way, program in programs if program.tunables]
    while tunable:
        way, program = tunable[min(int(rng.expovariate(1.0)), len(tunable) - 1)]
        values = tuner.mutate(program, rng, gentle=False)
        if not values:
            return
        yield _seed(way, briefing, values), program.with_values(values)


def fits(neighbour: Neighbour, briefing: Briefing) -> bool:
    """True where the innovation came from the same operations and its program is valid for this problem and its twin.

    A program made for other operations can be valid by accident of names and shapes, and is then merely wrong.
    """
    if neighbour.innovation.operations != problem_operations(briefing.scene.problem):
        return False
    return _is_valid(neighbour.innovation.program, briefing)


def _is_valid(program: Program, briefing: Briefing) -> bool:
    """True where nothing is wrong with the program, neither at the problem's shapes nor at its twin's."""
    problems = [p for p in (briefing.scene.problem, briefing.scene.twin) if p is not None]
    return not any(validate(program, problem, briefing.scene.gpu)[1] for problem in problems)


def _recall(neighbour: Neighbour, briefing: Briefing) -> Proposal:
    innovation = neighbour.innovation
    return Proposal(
        id="",
        generation=briefing.scene.generation,
        move=Move.RECALL,
        idea=innovation.idea,
        bottleneck="memory",
        innovation=neighbour.id,
    )


def _seed(way: Blueprint, briefing: Briefing, values: dict[str, int]) -> Proposal:
    at = f" (at {tuner.describe(values)})" if values else ""
    eager = demand(eager_times(briefing.scene.problem.graph, briefing.scene.gpu))
    saved = (
        f"; eager is host-bound: its operations take {eager.host_us:,.0f} µs to issue and {eager.device_us:,.0f} µs to "
        "run (modelled)"
    )
    return Proposal(
        id="",
        generation=briefing.scene.generation,
        move=Move.SEED,
        idea=f"{way.idea.rstrip('.')}{at}{saved if eager.host_bound else ''}",
        bottleneck="launch" if eager.host_bound else "memory",
        blueprint=way.name,
        values=values,
    )


def _replays(briefing: Briefing) -> Iterator[_Planned]:
    """Survivors that wait for their launches, as CUDA graphs."""
    for member in briefing.population:
        profile = member.evaluation.profile
        if profile is None or profile.bottleneck != "launch" or member.program.replay:
            continue
        proposal = Proposal(
            id="",
            generation=briefing.scene.generation,
            move=Move.REPLAY,
            idea=f"Replay the steps of {member.candidate.id} as one CUDA graph",
            bottleneck="launch",
            parents=(member.candidate.id,),
        )
        yield proposal, member.program.model_copy(update={"replay": True})


def _variations(briefing: Briefing, rng: Random) -> Iterator[_Planned]:
    yield from _replays(briefing)
    parents = [m for m in briefing.population if m.passed and m.program.tunables]
    misses = 0
    while parents and misses < ATTEMPTS_PER_SLOT * briefing.slots:
        first = _tournament(parents, rng)
        partners = [m for m in parents if m is not first and m.program.source == first.program.source]
        if partners and rng.random() < CROSS_SHARE and not briefing.gentle:
            second = rng.choice(partners)
            planned = _varied(
                Move.CROSS, (first, second), tuner.cross(first.program, second.program, rng), briefing
            )
        else:
            planned = _varied(
                Move.TUNE, (first,), tuner.mutate(first.program, rng, gentle=briefing.gentle), briefing
            )
        if planned is None:
            misses += 1
        else:
            yield planned


def _tournament(parents: Sequence[Member], rng: Random) -> Member:
    """The best of a few drawn survivors; they are ordered best first."""
    return parents[min(rng.randrange(len(parents)) for _ in range(TOURNAMENT))]


def _varied(
    move: Move, parents: tuple[Member, ...], values: dict[str, int], briefing: Briefing
) -> _Planned | None:
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
        move=move,
        idea=f"{verb} {tuner.describe(values)} of {first.candidate.id}",
        bottleneck=profile.bottleneck,
        parents=tuple(m.candidate.id for m in parents),
        values=values,
    )
    return proposal, first.program.with_values(values)
