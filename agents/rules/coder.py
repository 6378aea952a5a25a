"""The coder by rules: builds blueprints, recalls innovations, moves tunables; it writes no new CUDA."""

from __future__ import annotations

from agents.rules import tuner
from agents.schemas import CoderTask, Draft, Move
from memory.errors import WarpsmithError
from memory.records import Origin, Program
from tools.recipes.blueprints import Blueprint, built


class RulesCoder:
    """Turns proposals of the rules planner into programs."""

    def write(self, task: CoderTask) -> Draft:
        """Raises WarpsmithError for a proposal that does not name what its move needs."""
        proposal = task.proposal
        if proposal.move is Move.SEED:
            return _seeded(task)
        if proposal.move is Move.RECALL:
            return _recalled(task)
        first = task.parents[0]
        if proposal.move is Move.REPLAY:
            origin = Origin(kind="tuner", agent="rules", detail=proposal.move.value)
            techniques = (*first.candidate.techniques, "cuda graph")
            return Draft(first.program.model_copy(update={"replay": True}), origin, proposal.idea, techniques)
        origin = Origin(
            kind="tuner", agent="rules", detail=f"{proposal.move.value} {tuner.describe(proposal.values)}"
        )
        program = first.program.with_values(proposal.values)
        return Draft(program, origin, proposal.idea, first.candidate.techniques)


def _seeded(task: CoderTask) -> Draft:
    way, plain = _blueprint(task)
    program = plain.with_values(task.proposal.values)
    origin = Origin(kind="recipe", agent="rules", detail=", ".join(way.recipes))
    return Draft(program, origin, task.proposal.idea, way.techniques)


def _blueprint(task: CoderTask) -> tuple[Blueprint, Program]:
    for way, program in built(task.scene.problem, task.scene.twin):
        if way.name == task.proposal.blueprint:
            return way, program
    raise WarpsmithError(f"no blueprint {task.proposal.blueprint!r} for {task.scene.problem.name}")


def _recalled(task: CoderTask) -> Draft:
    innovation = task.innovation
    if innovation is None:
        raise WarpsmithError(
            f"proposal {task.proposal.id} recalls {task.proposal.innovation!r}, which is not at hand"
        )
    origin = Origin(kind="archive", agent="rules", detail=task.proposal.innovation or "")
    program = innovation.program.with_values(task.proposal.values)
    return Draft(program, origin, task.proposal.idea, innovation.techniques)
