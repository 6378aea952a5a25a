"""The choices of evolution, one by one."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from agents.schemas import Member
from graph.behaviour import Cell
from graph.evolution import Fitness
from graph.strategies import AfterQuiet, Elitism, Islands, Niches, Ring, Survival, Tournament, Uniform
from memory.records import Status
from tests.members import at_block, member

RANK = Fitness().rank
_drawn = st.lists(st.tuples(st.integers(0, 9), st.sampled_from([64, 128, 256])), max_size=12)


def by_block(m: Member) -> Cell | None:
    return Cell(m.program.tunable_values()["BLOCK"] // 128, 0, 0) if m.passed else None


def members(drawn: list[tuple[int, int]]) -> list[Member]:
    return [
        member(f"c{i:02d}", 10.0 + us, program=at_block(b), status=Status.PASSED if us else Status.INCORRECT)
        for i, (us, b) in enumerate(drawn)
    ]


def row(count: int) -> tuple[Member, ...]:
    return tuple(member(f"m{i}", 10.0 + i, program=at_block((64, 128, 256)[i % 3])) for i in range(count))


@given(_drawn, st.integers(1, 6), st.sampled_from([Elitism(), Niches(by_block), Niches(by_block, 0.0)]))
def test_survivors_are_distinct_passing_bounded_and_hold_the_fittest(
    drawn: list[tuple[int, int]], size: int, survival: Survival
) -> None:
    kept = survival.keep(members(drawn), size, RANK)
    assert len(kept) <= size and all(m.passed for m in kept)
    hashes = [m.candidate.program_hash for m in kept]
    assert len(set(hashes)) == len(hashes)
    assert [RANK(m) for m in kept] == sorted(RANK(m) for m in kept)
    passing = [m for m in members(drawn) if m.passed]
    if passing:
        assert kept[0].candidate.id == min(passing, key=RANK).candidate.id


def test_a_cell_without_a_member_is_given_a_place_before_the_next_fittest() -> None:
    tunable = at_block(64)
    alike = [
        member(f"a{i}", 10.0 + i, program=tunable.model_copy(update={"source": f"{tunable.source}// {i}\n"}))
        for i in range(4)
    ]
    unlike = member("z", 90.0, program=at_block(256))
    assert [m.candidate.id for m in Elitism().keep([*alike, unlike], 3, RANK)] == ["a0", "a1", "a2"]
    assert [m.candidate.id for m in Niches(by_block).keep([*alike, unlike], 3, RANK)] == ["a0", "a1", "z"]


def test_ties_are_broken_by_id_whatever_the_order_of_arrival() -> None:
    first, second = member("a", program=at_block(64)), member("b", program=at_block(256))
    assert [m.candidate.id for m in Elitism().keep([second, first], 2, RANK)] == ["a", "b"]


@given(st.integers(1, 9), st.integers(0, 99))
def test_a_parent_is_one_of_those_offered(count: int, seed: int) -> None:
    ranked = row(count)
    for choice in (Tournament(), Tournament(1), Uniform()):
        assert choice.choose(ranked, Random(seed)) in ranked


def test_a_tournament_prefers_the_fitter_and_gives_everyone_a_chance() -> None:
    ranked, rng = row(4), Random(0)
    won = Counter(Tournament(2).choose(ranked, rng).candidate.id for _ in range(2000))
    assert won["m0"] > won["m1"] > won["m2"] > won["m3"] > 0
    even = Counter(Uniform().choose(ranked, rng).candidate.id for _ in range(2000))
    assert min(even.values()) > 400


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.integers(0, 20))
def test_visitors_are_the_fittest_of_the_island_before_and_only_when_it_is_time(
    sizes: list[int], generation: int
) -> None:
    islands: Islands = tuple(row(size) for size in sizes)
    arrivals = Ring(every=3, count=2).arrivals(islands, generation)
    assert len(arrivals) == len(islands)
    if len(islands) < 2 or (generation + 1) % 3:
        assert not any(arrivals)
    else:
        assert all(came == islands[i - 1][:2] for i, came in enumerate(arrivals))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=5))
def test_the_island_of_the_fittest_never_restarts(drawn: list[tuple[int, int]]) -> None:
    islands: Islands = tuple(row(size) for size, _ in drawn)
    quiet = [count for _, count in drawn]
    stale = AfterQuiet(4).stale(islands, quiet, RANK)
    assert all(quiet[i] >= 4 for i in stale)
    peopled = [i for i, island in enumerate(islands) if island]
    if peopled:
        home = min((RANK(islands[i][0]), i) for i in peopled)[1]
        assert home not in stale
        assert stale == {i for i, count in enumerate(quiet) if count >= 4} - {home}
