"""Interleaving over a scripted clock, and intervals that hold what they should."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.timing import Samples, TimingBudget, interleave, median_interval, ratio_interval

TIMES = st.lists(st.floats(0.5, 1e6), min_size=1, max_size=60).map(np.array)
PAIRS = st.lists(st.tuples(st.floats(0.5, 1e6), st.floats(0.5, 1e6)), min_size=1, max_size=60).map(np.array)
FEW = settings(max_examples=40, deadline=None)


class ScriptedTimer:
    """Reads what the contestant returns as its time, and writes down everything in order."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.settled = False

    def cool(self) -> None:
        self.log.append("cool")

    def start(self, work: Callable[[], object]) -> Callable[[], float]:
        self.settled = False
        taken = work()
        assert isinstance(taken, float)
        self.log.append("run")

        def read() -> float:
            assert self.settled
            return taken

        return read

    def settle(self) -> None:
        self.settled = True


def race(budget: TimingBudget, sets: int = 2) -> tuple[dict[str, Samples], list[str], ScriptedTimer]:
    timer = ScriptedTimer()
    calls: list[str] = []

    def contestant(name: str, taken: float) -> Callable[[int], float]:
        def run(index: int) -> float:
            calls.append(f"{name}{index}")
            return taken + index

        return run

    contestants = {"mine": contestant("m", 10.0), "eager": contestant("e", 20.0)}
    samples = interleave(timer, contestants, sets=sets, budget=budget)
    warming = 2 * sets + 2
    return samples, calls[warming:], timer


def test_contestants_take_turns_on_the_same_sets_and_alternate_who_goes_first() -> None:
    samples, calls, _ = race(TimingBudget(seconds=0.0, min_rounds=4, max_rounds=4))
    assert calls == ["m0", "e0", "m1", "e1", "e0", "m0", "e1", "m1"]
    assert samples["mine"].tolist() == [10.0, 11.0, 10.0, 11.0]
    assert samples["eager"].tolist() == [20.0, 21.0, 20.0, 21.0]


def test_every_timed_run_starts_cold() -> None:
    _, _, timer = race(TimingBudget(seconds=0.0, min_rounds=3, max_rounds=3))
    timed = timer.log[-12:]
    assert timed == ["cool", "run"] * 6


def test_outputs_can_be_spoiled_before_every_timed_run() -> None:
    timer, spoiled = ScriptedTimer(), list[tuple[str, int]]()
    budget = TimingBudget(seconds=0.0, min_rounds=3, max_rounds=3)
    interleave(timer, {"mine": float}, sets=2, budget=budget, before_run=lambda *run: spoiled.append(run))
    assert spoiled == [("mine", 0), ("mine", 1), ("mine", 0)]


def test_a_generous_budget_is_bounded_by_the_most_rounds() -> None:
    samples, _, _ = race(TimingBudget(seconds=100.0, min_rounds=2, max_rounds=7))
    assert samples["mine"].size == 7


@FEW
@given(TIMES)
def test_an_interval_holds_its_median_and_stays_among_the_samples(samples: Samples) -> None:
    interval = median_interval(samples)
    assert interval.middle == np.median(samples)
    assert samples.min() <= interval.low <= interval.middle <= interval.high <= samples.max()


@FEW
@given(TIMES, st.integers(0, 1000))
def test_the_same_seed_gives_the_same_interval(samples: Samples, seed: int) -> None:
    assert median_interval(samples, seed=seed) == median_interval(samples, seed=seed)


@FEW
@given(TIMES)
def test_more_confidence_never_narrows_an_interval(samples: Samples) -> None:
    narrow, wide = median_interval(samples, confidence=0.5), median_interval(samples, confidence=0.99)
    assert wide.low <= narrow.low and narrow.high <= wide.high


@FEW
@given(PAIRS)
def test_a_ratio_holds_the_ratio_of_medians_and_turns_with_its_sides(pairs: Samples) -> None:
    one, other = pairs[:, 0], pairs[:, 1]
    forth, back = ratio_interval(one, other), ratio_interval(other, one)
    assert forth.low <= forth.middle <= forth.high
    assert forth.middle == pytest.approx(np.median(one) / np.median(other))
    assert forth.middle == pytest.approx(1 / back.middle)


@FEW
@given(TIMES)
def test_a_program_raced_against_itself_is_a_tie(samples: Samples) -> None:
    interval = ratio_interval(samples, samples)
    assert (interval.low, interval.middle, interval.high) == (1.0, 1.0, 1.0)


def test_the_interval_of_a_ratio_covers_the_truth_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(7)
    hits = 0
    for _ in range(200):
        mine, eager = generator.lognormal(0.0, 0.1, 40), generator.lognormal(0.0, 0.1, 40) * 1.5
        interval = ratio_interval(eager, mine)
        hits += interval.low <= 1.5 <= interval.high
    assert 0.88 <= hits / 200 <= 1.0


def test_no_samples_and_unequal_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="no samples"):
        median_interval(np.array([]))
    with pytest.raises(ValueError, match="pairs"):
        ratio_interval(np.ones(3), np.ones(2))
