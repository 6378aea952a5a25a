"""The bandit over (model, move): always one of the arms given, led by gain per cost, and never blind to the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.bandit import WORTHWHILE, Arm, draw_arm
from agents.endpoint import ModelChoice
from agents.schemas import ArmOutcome, Move

A, B = ModelChoice("a", 1.0), ModelChoice("b", 1.0)
MOVES = (Move.WRITE, Move.IMPROVE)

choices = st.lists(
    st.builds(ModelChoice, st.sampled_from("abcd"), st.floats(0.01, 100)),
    min_size=1,
    max_size=4,
    unique_by=lambda choice: choice.name,
)
moves = st.lists(st.sampled_from(Move), min_size=1, max_size=5, unique=True)
outcomes = st.lists(
    st.builds(
        ArmOutcome, st.sampled_from("abcde"), st.sampled_from(Move), st.floats(0, 10), st.floats(0, 1e3)
    ),
    max_size=20,
)


@given(choices, moves, outcomes, st.integers())
def test_a_draw_is_always_one_of_the_arms_given_and_the_rngs(
    models: list[ModelChoice], possible: list[Move], past: list[ArmOutcome], seed: int
) -> None:
    arm = draw_arm(models, possible, past, Random(seed))
    assert arm.model in {m.name for m in models} and arm.move in possible
    assert draw_arm(models, possible, past, Random(seed)) == arm


def test_without_models_or_moves_there_is_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="empty"):
        draw_arm([], MOVES, [], Random(0))
    with pytest.raises(ValueError, match="empty"):
        draw_arm([A], [], [], Random(0))


def draws(
    models: Sequence[ModelChoice],
    past: Sequence[ArmOutcome],
    count: int = 1000,
    moves: Sequence[Move] = MOVES,
) -> Counter[Arm]:
    rng = Random(1)
    return Counter(draw_arm(models, moves, past, rng) for _ in range(count))


def learnt(
    world: Callable[[Arm, Random], tuple[float, float]], count: int, seed: int, models: Sequence[ModelChoice] = (A, B)
) -> Counter[Arm]:  # fmt: skip
    """How often each arm is drawn where every draw's (gain, cost) is learnt from."""
    rng = Random(seed)
    past: list[ArmOutcome] = []
    drawn: Counter[Arm] = Counter()
    for _ in range(count):
        arm = draw_arm(models, MOVES, past, rng)
        past.append(ArmOutcome(arm.model, arm.move, *world(arm, rng)))
        drawn[arm] += 1
    return drawn


@pytest.mark.parametrize("seed", range(5))
def test_the_arm_of_the_best_gain_per_cost_is_drawn_most_and_none_starves(seed: int) -> None:
    chances = {
        ("a", Move.WRITE): 0.1,
        ("a", Move.IMPROVE): 0.6,
        ("b", Move.WRITE): 0.1,
        ("b", Move.IMPROVE): 0.2,
    }

    def world(arm: Arm, rng: Random) -> tuple[float, float]:
        return (0.2 if rng.random() < chances[arm.model, arm.move] else 0.0), 0.05

    drawn = learnt(world, 400, seed)
    assert drawn.most_common(1)[0][0] == Arm("a", Move.IMPROVE)
    assert drawn[Arm("a", Move.IMPROVE)] > 200
    assert len(drawn) == 4 and min(drawn.values()) >= 3


def test_one_large_gain_does_not_shut_the_other_arms_out() -> None:
    past = [ArmOutcome("a", Move.WRITE, 1.5, 0.05), *[ArmOutcome("a", Move.WRITE, 0.0, 0.05)] * 2]
    drawn = draws((A, B), past, 100)
    assert len(drawn) == 4 and min(drawn.values()) > 10


@pytest.mark.parametrize("seed", range(3))
def test_of_two_models_of_equal_gain_the_cheaper_one_is_drawn_more(seed: int) -> None:
    def world(arm: Arm, rng: Random) -> tuple[float, float]:
        return (0.2 if rng.random() < 0.5 else 0.0), (0.5 if arm.model == "a" else 0.1)

    drawn = learnt(world, 300, seed)
    assert sum(n for arm, n in drawn.items() if arm.model == "b") > 200


def test_gains_too_small_to_matter_count_as_misses() -> None:
    small = [ArmOutcome("a", Move.WRITE, WORTHWHILE * 0.9, 0.1)] * 20
    large = [ArmOutcome("b", Move.WRITE, WORTHWHILE * 1.1, 0.1)] * 20
    drawn = draws((A, B), [*small, *large], moves=(Move.WRITE,))
    assert drawn[Arm("b", Move.WRITE)] > 900


def test_while_nothing_is_known_the_operators_weights_decide() -> None:
    even, heavy = draws((A, B), ()), draws((A, ModelChoice("b", 4.0)), ())
    of_b = [sum(n for arm, n in drawn.items() if arm.model == "b") for drawn in (even, heavy)]
    assert 430 < of_b[0] < 570 and of_b[1] > 800


def test_a_gain_outweighs_a_weight() -> None:
    past = [
        outcome
        for _ in range(30)
        for outcome in (ArmOutcome("a", Move.WRITE, 0.0, 0.1), ArmOutcome("b", Move.WRITE, 0.2, 0.1))
    ]
    drawn = draws((ModelChoice("a", 3.0), B), past, moves=(Move.WRITE,))
    assert drawn[Arm("b", Move.WRITE)] > 950


def test_where_nothing_costs_anything_the_gain_alone_decides() -> None:
    past = [ArmOutcome("a", Move.WRITE, 0.0, 0.0)] * 50 + [ArmOutcome("b", Move.WRITE, 0.2, 0.0)] * 2
    drawn = draws((A, B), past, moves=(Move.WRITE,))
    assert drawn[Arm("b", Move.WRITE)] > 950


def test_a_models_past_says_nothing_of_another_models_move() -> None:
    past = [ArmOutcome("a", Move.WRITE, 0.3, 0.1)] * 20
    drawn = draws((A, B), past)
    others = [drawn[arm] for arm in (Arm("a", Move.IMPROVE), Arm("b", Move.WRITE), Arm("b", Move.IMPROVE))]
    assert max(others) - min(others) < 60 and drawn[Arm("a", Move.WRITE)] > 700
