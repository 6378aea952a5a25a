"""The order in which entries are shown: what is guaranteed whatever they are."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.archive_entry import Hit
from memory.ranking import DIVERSITY, GAIN_WEIGHT, ranked, sameness, worth
from memory.records import Innovation
from tests import strategies
from tests.memory import made

SLOW = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=30)
"""Making innovations takes most of the time."""

HITS = st.lists(
    st.builds(
        Hit,
        id=st.uuids().map(str),
        innovation=strategies.innovations,
        similarity=st.floats(-1, 1, allow_nan=False),
    ),
    max_size=8,
    unique_by=lambda hit: hit.id,
)


def hit(name: str, similarity: float, **changes: object) -> Hit:
    """A hit whose program is its own."""
    found = made.innovation(made.problem(), source=name).model_copy(update=changes)
    return Hit(name, found, similarity)


@SLOW
@given(hits=HITS, limit=st.integers(0, 10))
def test_it_chooses_among_the_hits_each_once_and_no_more_than_asked(hits: list[Hit], limit: int) -> None:
    found = ranked(hits, "sm_90a", limit)
    fit = [h for h in hits if h.innovation.verification != "refuted"]
    assert len(found) == min(limit, len(fit))
    assert len({h.id for h in found}) == len(found)
    assert all(h in fit for h in found)


@SLOW
@given(hits=HITS, limit=st.integers(1, 10))
def test_the_order_given_changes_nothing_and_more_asked_only_adds(hits: list[Hit], limit: int) -> None:
    assert ranked(hits, "sm_90a", limit) == ranked(hits[::-1], "sm_90a", limit)
    assert ranked(hits, "sm_90a", limit + 1)[:limit] == ranked(hits, "sm_90a", limit)


@SLOW
@given(hits=HITS)
def test_gain_adds_at_most_its_weight_and_never_takes(hits: list[Hit]) -> None:
    for found in hits:
        assert found.similarity <= worth(found, found.innovation.arch) <= found.similarity + GAIN_WEIGHT


@SLOW
@given(one=strategies.innovations, other=strategies.innovations)
def test_sameness_is_a_share_and_the_same_either_way(one: Innovation, other: Innovation) -> None:
    assert 0.0 <= sameness(one, other) == sameness(other, one) <= 1.0


def test_of_two_alike_the_one_that_gained_more_on_this_architecture_comes_first() -> None:
    slow, fast = hit("slow", 0.5, speedup=1.1), hit("fast", 0.49, speedup=5.0)
    assert [h.id for h in ranked([slow, fast], "sm_90a", 2)] == ["fast", "slow"]
    boast = Hit(
        "boast",
        fast.innovation.model_copy(
            update={"provenance": fast.innovation.provenance.model_copy(update={"origin": "import"})}
        ),
        0.49,
    )
    assert ranked([slow, boast], "sm_90a", 2)[0].id == "slow"


def test_a_gain_on_another_architecture_counts_nothing_and_its_entries_come_later() -> None:
    here, there = hit("here", 0.3, speedup=1.0), hit("there", 0.9, speedup=8.0, arch="sm_80")
    assert worth(there, "sm_90a") == there.similarity
    assert [h.id for h in ranked([there, here], "sm_90a", 2)] == ["here", "there"]


def test_a_different_idea_comes_before_one_that_says_the_same_again() -> None:
    first = hit("first", 0.9)
    again = hit("again", 0.89)
    other = hit(
        "other", 0.89 - DIVERSITY / 4, techniques=("split reduction",), operations=("sum",), problem_hash="b"
    )
    assert [h.id for h in ranked([first, again, other], "sm_90a", 3)] == ["first", "other", "again"]


def test_the_same_program_comes_again_only_where_nothing_else_is_left() -> None:
    one = hit("one", 0.9)
    twin = Hit("twin", one.innovation.model_copy(update={"problem_hash": "b"}), 0.9)
    far = hit("far", 0.0)
    assert [h.id for h in ranked([one, twin, far], "sm_90a", 3)][1] == "far"


def test_what_was_refuted_is_not_shown() -> None:
    assert ranked([hit("bad", 1.0, verification="refuted")], "sm_90a", 3) == []
