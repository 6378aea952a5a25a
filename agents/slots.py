"""The slots of a generation that go to models: how many, and which (model, move, parents) each is for.

Not here: what a model makes of a slot (agents.planner), and how arms are chosen (agents.bandit).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from agents.bandit import Arm, draw_arm
from agents.endpoint import ModelChoice
from agents.schemas import Briefing, Member, Move, short_id

MODEL_SHARE = 0.5
"""Of a generation's slots; the rest goes to the tuner, which costs no tokens."""


@dataclass(frozen=True)
class Slot:
    """A place for a model's proposal."""

    number: int
    arm: Arm
    parents: tuple[Member, ...]
    innovation: str | None = None


def model_slots(slots: int) -> int:
    """How many of a generation's slots go to models: their share, and one at least."""
    return max(1, round(slots * MODEL_SHARE))


def open_slot(number: int, briefing: Briefing, coders: Sequence[ModelChoice], rng: Random) -> Slot:
    """A move that is possible now, by the arm that the bandit draws."""
    authored = [m for m in briefing.population if m.program.entries]
    sources = {m.program.source: m for m in reversed(authored)}
    foreign = [n for n in briefing.neighbours if n.innovation.arch != briefing.scene.gpu.arch]
    moves = [Move.WRITE]
    moves += [Move.IMPROVE, Move.SIMPLIFY] if authored else []
    moves += [Move.COMBINE] if len(sources) > 1 else []
    moves += [Move.PORT] if foreign else []
    arm = draw_arm(coders, moves, briefing.outcomes, rng)
    if arm.move is Move.PORT:
        return Slot(number, arm, (), rng.choice(foreign).id)
    if arm.move is Move.COMBINE:
        best = sorted(sources.values(), key=briefing.population.index)
        return Slot(number, arm, tuple(best[: min(len(best), rng.choice((2, 3)))]))
    if arm.move is Move.WRITE:
        return Slot(number, arm, ())
    return Slot(number, arm, (authored[min(rng.randrange(len(authored)) for _ in range(2))],))


def described(slot: Slot) -> str:
    """The slot as a line of the planner's prompt."""
    parents = ", ".join(short_id(m.candidate.id) for m in slot.parents) or "none"
    ported = f"; innovation {slot.innovation[:8]}" if slot.innovation else ""
    return f"- slot {slot.number}: move {slot.arm.move.value}; suggested parents: {parents}{ported}"
