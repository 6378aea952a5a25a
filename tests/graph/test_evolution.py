"""Evolution: fitness keeps failures below passes, nothing best is lost, and the same verdicts give the same world."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from agents.schemas import Member
from graph.behaviour import Cell
from graph.evolution import Evolution, Fitness, World, gained
from graph.strategies import AfterQuiet, Elitism, Niches, Ring
from memory.records import Stage, Status
from tests.members import at_block, herd, member

_failing = st.tuples(st.sampled_from([s for s in Status if s is not Status.PASSED]), st.sampled_from(Stage))
_times = st.floats(min_value=1.0, max_value=1e6)
_weights = st.floats(min_value=0.01, max_value=1.0)
_drawn = st.tuples(st.integers(0, 2), st.integers(0, 9), st.sampled_from([64, 128, 256]))
"""(island, 0 for a failure or else µs, block)."""
_generations = st.lists(st.lists(_drawn, max_size=8), min_size=1, max_size=6)


def by_block(m: Member) -> Cell | None:
    """A cell for every block: the example's programs differ in nothing else."""
    return Cell(m.program.tunable_values()["BLOCK"] // 128, 0, 0) if m.passed else None


def evolution(size: int = 6, islands: int = 3) -> Evolution:
    return Evolution.usual(size, islands, by_block, Fitness(), migrate_every=2, restart_after=2)


def born(generation: int, drawn: list[tuple[int, int, int]]) -> list[tuple[int, Member]]:
    return [
        (
            island,
            member(
                f"{generation:03d}-{index:03d}",
                10.0 + us,
                program=at_block(block),
                status=Status.PASSED if us else Status.INCORRECT,
            ),
        )
        for index, (island, us, block) in enumerate(drawn)
    ]


def lived(generations: list[list[tuple[int, int, int]]], e: Evolution) -> World:
    world = World.empty(e.islands)
    for number, drawn in enumerate(generations):
        world = e.advance(world, born(number, drawn), number)
    return world


@given(_failing, _times, _weights, _weights)
def test_no_failing_candidate_outranks_a_passing_one_whatever_the_weights(
    failure: tuple[Status, Stage], median_us: float, correctness: float, performance: float
) -> None:
    fitness = Fitness(correctness, performance)
    failed = member("a", status=failure[0], stage=failure[1])
    assert fitness.rank(failed) > fitness.rank(member("b", median_us))
    assert fitness.of(failed.evaluation) < fitness.of(member("b", median_us).evaluation)


@given(_times, _times)
def test_faster_is_never_less_fit(first: float, second: float) -> None:
    fast, slow = sorted((first, second))
    assert Fitness().of(member("a", fast).evaluation) >= Fitness().of(member("b", slow).evaluation)


def test_fitness_is_the_requirements_sum() -> None:
    # The example's floor is 5 µs.
    assert abs(Fitness().of(member("a", 10.0).evaluation) - (0.7 + 0.3 * 0.5)) < 1e-12
    assert abs(Fitness(0.5, 0.5).of(member("a", 10.0).evaluation) - (0.5 + 0.5 * 0.5)) < 1e-12
    wrong = member("b", status=Status.INCORRECT, stage=Stage.CORRECTNESS)
    unread = member("c", status=Status.SCHEMA_ERROR, stage=Stage.SCHEMA)
    assert 0 == Fitness().of(unread.evaluation) < Fitness().of(wrong.evaluation) < 0.7


@given(_generations)
def test_the_fittest_of_all_generations_is_never_lost(generations: list[list[tuple[int, int, int]]]) -> None:
    e = evolution()
    everyone = [m for n, drawn in enumerate(generations) for _, m in born(n, drawn) if m.passed]
    population = e.population(lived(generations, e))
    if everyone:
        best = min(everyone, key=e.fitness.rank)
        assert best.evaluation.timing is not None and population[0].evaluation.timing is not None
        assert population[0].evaluation.timing.median_us == best.evaluation.timing.median_us
    else:
        assert population == []


@given(_generations)
def test_a_population_is_distinct_passing_ordered_and_bounded(
    generations: list[list[tuple[int, int, int]]],
) -> None:
    e = evolution()
    world = lived(generations, e)
    population = e.population(world)
    assert len(population) <= e.size and all(m.passed for m in population)
    hashes = [m.candidate.program_hash for m in population]
    assert len(set(hashes)) == len(hashes)
    assert [e.fitness.rank(m) for m in population] == sorted(e.fitness.rank(m) for m in population)
    assert all(len(island) <= e.island_size for island in world.islands)


@given(_generations)
def test_elites_are_the_fittest_of_their_cells_and_outlive_their_islands(
    generations: list[list[tuple[int, int, int]]],
) -> None:
    e = evolution()
    everyone = [m for n, drawn in enumerate(generations) for _, m in born(n, drawn) if m.passed]
    elites = lived(generations, e).elites
    assert {by_block(m) for m in elites} == {by_block(m) for m in everyone}
    for elite in elites:
        rivals = [m for m in everyone if by_block(m) == by_block(elite)]
        assert _us(elite) == min(_us(m) for m in rivals)


@given(_generations, st.randoms(use_true_random=False))
def test_the_order_of_arrival_changes_nothing(
    generations: list[list[tuple[int, int, int]]], luck: Random
) -> None:
    e = evolution()
    world = other = World.empty(e.islands)
    for number, drawn in enumerate(generations):
        children = born(number, drawn)
        world = e.advance(world, children, number)
        luck.shuffle(children)
        other = e.advance(other, children, number)
    assert other == world


@given(_generations)
def test_an_island_without_a_gain_begins_anew_unless_it_holds_the_fittest(
    generations: list[list[tuple[int, int, int]]],
) -> None:
    e = evolution()
    world = World.empty(e.islands)
    for number, drawn in enumerate(generations):
        before = world
        world = e.advance(world, born(number, drawn), number)
        for island in world.restarted:
            assert world.islands[island] == () and world.quiet[island] == 0
            assert before.quiet[island] >= 1, "two generations without a gain make it stale"
        assert len(world.restarted) < e.islands or not e.population(world)


def test_a_pinned_member_stays_and_a_killed_one_goes() -> None:
    e = Evolution(1, 1, by_block, survival=Elitism(), restart=AfterQuiet(1))
    slow, fast = member("a", 50.0, program=at_block(64)), member("b", 20.0, program=at_block(128))
    world = e.advance(World.empty(1), [(0, slow), (0, fast)], 0, pinned=frozenset({"a"}))
    assert [m.candidate.id for m in world.islands[0]] == ["b", "a"]
    assert world.without(frozenset({"b"})).islands == ((slow,),)
    assert world.without(frozenset({"b"})).elites == (slow,)


def test_migrants_arrive_when_the_ring_says_so() -> None:
    e = Evolution(4, 2, by_block, survival=Niches(by_block), migration=Ring(every=2, count=1))
    world = e.advance(World.empty(2), [(0, member("a", 20.0, program=at_block(64)))], 0)
    assert world.islands[1] == ()
    world = e.advance(world, [], 1)
    assert [m.candidate.id for m in world.islands[1]] == ["a"]


def test_parents_come_from_their_island_or_from_the_grid_and_mates_share_a_source() -> None:
    here = (member("a", 20.0, program=at_block(64)), member("b", 30.0, program=at_block(128)))
    there = (member("c", 10.0, program=at_block(256)),)
    bred = herd(here, there, ())
    assert (bred.islands, bred.restarts(0), bred.restarts(2)) == (3, False, True)
    rng = Random(0)
    drawn = {m.candidate.id for _ in range(50) if (m := bred.parent(0, rng, gentle=True))}
    assert drawn == {"a", "b"}
    assert bred.parent(2, rng, gentle=False) is None
    mate = bred.mate(here[0], 0, rng)
    assert mate is here[1] and bred.mate(there[0], 1, rng) is None
    reached = Evolution(6, 2, by_block).herd(World((here, there), (0, 0), elites=there))
    drawn = {m.candidate.id for _ in range(80) if (m := reached.parent(0, rng, gentle=False))}
    assert drawn == {"a", "b", "c"}


def test_a_gain_is_one_percent_or_more() -> None:
    assert gained([], [member("a")])
    assert gained([member("a", 100.0)], [member("b", 98.9)])
    assert not gained([member("a", 100.0)], [member("b", 99.5)])
    assert not gained([], [])


def _us(m: Member) -> float:
    assert m.evaluation.timing is not None
    return m.evaluation.timing.median_us
