"""Selection: fitness keeps failures below passes, survivors are distinct and ordered, ties break by id."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agents.schemas import Member
from graph.evolution import fitness, gained, survivors, too_many_failures
from memory.records import Stage, Status
from tests.members import at_block, member

_failing = st.tuples(st.sampled_from([s for s in Status if s is not Status.PASSED]), st.sampled_from(Stage))
_times = st.floats(min_value=1.0, max_value=1e6)


@given(_failing, _times)
def test_no_failing_candidate_outranks_a_passing_one(failure: tuple[Status, Stage], median_us: float) -> None:
    failed = member("a", status=failure[0], stage=failure[1])
    assert fitness(failed.evaluation) < fitness(member("b", median_us).evaluation)


@given(_times, _times)
def test_faster_is_never_less_fit(first: float, second: float) -> None:
    fast, slow = sorted((first, second))
    assert fitness(member("a", fast).evaluation) >= fitness(member("b", slow).evaluation)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from([64, 128, 256])), max_size=12), st.integers(1, 6)
)
def test_survivors_are_distinct_passing_and_best_first(drawn: list[tuple[int, int]], size: int) -> None:
    members = [
        member(
            f"c{i:02d}",
            10.0 + us,
            program=at_block(block),
            status=Status.INCORRECT if us == 0 else Status.PASSED,
        )
        for i, (us, block) in enumerate(drawn)
    ]
    kept = survivors(members, size)
    assert len(kept) <= size
    assert all(m.passed for m in kept)
    hashes = [m.candidate.program_hash for m in kept]
    assert len(set(hashes)) == len(hashes)
    assert [_us(m) for m in kept] == sorted(_us(m) for m in kept)


def _us(m: Member) -> float:
    assert m.evaluation.timing is not None
    return m.evaluation.timing.median_us


def test_ties_are_broken_by_id_whatever_the_order_of_arrival() -> None:
    first, second = member("a", program=at_block(64)), member("b", program=at_block(256))
    assert [m.candidate.id for m in survivors([second, first], 2)] == ["a", "b"]


def test_a_gain_is_one_percent_or_more() -> None:
    assert gained([], [member("a")])
    assert gained([member("a", 100.0)], [member("b", 98.9)])
    assert not gained([member("a", 100.0)], [member("b", 99.5)])
    assert not gained([], [])


def test_more_than_a_fifth_of_failures_is_too_many() -> None:
    failed = member("f", status=Status.INCORRECT)
    fine = member("p")
    assert not too_many_failures([failed, fine, fine, fine, fine])
    assert too_many_failures([failed, failed, fine, fine, fine])
    assert not too_many_failures([])
