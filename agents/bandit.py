"""Which model should make which move next: a bandit over (model, move) that learns from verified gains per cost.

Thompson sampling: an arm's chance of a gain is drawn from Beta(1 + gains, 1 + misses), and weighed by the gain it
brings when it does, by what it costs, and by the operator's weight of its model. Pure: all luck is the rng's.
Source: Thompson, "On the likelihood that one unknown probability exceeds another", Biometrika 25 (1933).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from agents.endpoint import ModelChoice
from agents.schemas import ArmOutcome, Move

WORTHWHILE = 0.01
"""A gain, as log of the ratio of times, from which a proposal counts as a success; as graph.evolution.GAIN."""
FIRST_GAIN = 0.1
"""What a success is expected to bring before there was any."""


@dataclass(frozen=True)
class Arm:
    """A model making a move."""

    model: str
    move: Move


def draw_arm(
    models: Sequence[ModelChoice], moves: Sequence[Move], outcomes: Sequence[ArmOutcome], rng: Random
) -> Arm:
    """The arm that this draw favours. Raises ValueError where there are no models or no moves."""
    # An arm without a past is taken for a typical one; a smaller guess would never let it be drawn again after one
    # arm's large gain.
    gain = _mean([o.gain for o in outcomes if o.gain >= WORTHWHILE], FIRST_GAIN)
    cost = _mean([o.cost for o in outcomes], 0.0)
    worth: dict[Arm, float] = {}
    for choice in models:
        for move in moves:
            mine = [o for o in outcomes if o.model == choice.name and o.move is move]
            worth[Arm(choice.name, move)] = choice.weight * _draw(mine, gain, cost, rng)
    return max(worth, key=lambda arm: worth[arm])


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _draw(mine: Sequence[ArmOutcome], typical_gain: float, typical_cost: float, rng: Random) -> float:
    """Gain per cost that an arm of these outcomes brings now; the gain alone while nothing has cost anything."""
    gains = [o.gain for o in mine if o.gain >= WORTHWHILE]
    chance = rng.betavariate(1 + len(gains), 1 + len(mine) - len(gains))
    gain = _mean([typical_gain, *gains], 0.0)
    cost = _mean([typical_cost, *(o.cost for o in mine)], 0.0)
    return chance * gain / cost if typical_cost > 0 else chance * gain
