"""What pages ask of a run as a whole, compared with what its records say one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.events import Review, Verdict
from memory.records import Stage, Status
from memory.store import Store
from memory.store_views import Filter, Order, Seen
from tests.memory import made

RUN = "run-1"
TIMES = {"a": 50.0, "b": None, "c": 40.0, "d": 60.0, "e": None}
"""Candidate -> its time; None where it failed. `f` has no verdict."""
ANY = Filter()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Two generations of three candidates on two islands."""
    with Store(tmp_path / "store.db") as opened:
        opened.put_problem(made.problem())
        opened.put_run(made.run())
        for at, name in enumerate("abcdef"):
            program = made.program(f'extern "C" __global__ void k(float* x) {{}} // {name}')
            opened.put_program(program)
            candidate = made.candidate(f"{RUN}-{name}", program.content_hash(), generation=at // 3)
            opened.put_candidate(
                candidate.model_copy(update={"island": at % 2, "idea": f"Try {name.upper()} & 100%_"})
            )
            if name in TIMES:
                opened.put_evaluation(made.evaluation(program.content_hash(), median_us=TIMES[name]))
        yield opened


def names(store: Store, only: Filter = ANY, order: Order = "oldest", **page: int) -> str:
    found = store.candidate_page(RUN, policy_hash=made.POLICY, only=only, order=order, **page)
    return "".join(row.candidate.id[-1] for row in found.rows)


def test_generations_have_their_counts_and_the_best_up_to_each(store: Store) -> None:
    first, second = store.by_generation(RUN, policy_hash=made.POLICY)
    assert (first.candidates, first.passed, first.judged) == (3, 2, 3)
    assert first.by_status == {Status.PASSED: 2, Status.INCORRECT: 1}
    assert first.failed_at == {Stage.CORRECTNESS: 1}
    assert (first.best_us, first.best_so_far_us) == (40.0, 40.0)
    assert first.per_us == pytest.approx(1 / 50 + 1 / 40)
    assert (second.candidates, second.passed, second.judged) == (3, 1, 2)
    assert (second.best_us, second.best_so_far_us) == (60.0, 40.0)


def test_verdicts_under_another_policy_do_not_count(store: Store) -> None:
    lines = store.by_generation(RUN, policy_hash="another")
    assert [(line.candidates, line.judged, line.best_us) for line in lines] == [(3, 0, None), (3, 0, None)]


def test_islands_have_their_best(store: Store) -> None:
    found = [(i.island, i.candidates, i.passed, i.best_us) for i in store.by_island(RUN)]
    assert found == [(0, 3, 2, 40.0), (1, 3, 1, 60.0)]


@pytest.mark.parametrize(
    ("only", "fits"),
    [
        (Filter(), "abcdef"),
        (Filter(status=Status.PASSED), "acd"),
        (Filter(status=Status.INCORRECT, generation=1), "e"),
        (Filter(unjudged=True), "f"),
        (Filter(island=1), "bdf"),
        (Filter(generation=0, island=0), "ac"),
        (Filter(text="try b"), "b"),
        (Filter(text="RUN-1-C"), "c"),
        (Filter(text="100%_"), "abcdef"),
        (Filter(text="%"), "abcdef"),
        (Filter(text="'; DROP TABLE runs; --"), ""),
    ],
)
def test_a_filter_finds_what_fits_and_counts_it(store: Store, only: Filter, fits: str) -> None:
    assert names(store, only) == fits
    assert store.candidate_page(RUN, policy_hash=made.POLICY, only=only, limit=1).total == len(fits)


def test_pages_are_in_order_and_follow_on_one_another(store: Store) -> None:
    assert names(store, order="newest") == "fedcba"
    assert names(store, order="fastest") == "cadbef"
    pages = [names(store, order="fastest", limit=4, offset=offset) for offset in (0, 4, 8)]
    assert pages == ["cadb", "ef", ""]


def test_only_new_verdicts_come_again(store: Store) -> None:
    first, seen = store.judged_since(RUN, Seen(), policy_hash=made.POLICY)
    assert "".join(row.candidate.id[-1] for row in first) == "abcde"
    assert store.judged_since(RUN, seen, policy_hash=made.POLICY) == ([], seen)
    late = store.candidate(f"{RUN}-f")
    store.put_evaluation(made.evaluation(late.program_hash, median_us=10.0))
    second, seen = store.judged_since(RUN, seen, policy_hash=made.POLICY)
    assert [row.candidate.id for row in second] == [late.id]
    # A candidate whose program had its verdict before the candidate was written.
    store.put_candidate(made.candidate(f"{RUN}-g", late.program_hash, generation=2))
    third, _ = store.judged_since(RUN, seen, policy_hash=made.POLICY)
    assert [row.candidate.id for row in third] == [f"{RUN}-g"]


def test_runs_come_in_pages_newest_first(store: Store) -> None:
    for day in (2, 3):
        store.put_run(made.run(f"run-{day}", created=f"2026-01-0{day}T00:00:00Z"))
    total, runs = store.run_page(limit=2, offset=1)
    assert (total, [run.id for run in runs]) == (3, ["run-2", "run-1"])
    assert len(store.unended_runs()) == 3


def test_what_people_said_comes_newest_first_with_its_run(store: Store) -> None:
    for verdict, at in ((Verdict.PINNED, "1"), (Verdict.REJECTED, "2"), (Verdict.APPROVED, "3")):
        store.put_review(Review(candidate_id=f"{RUN}-a", verdict=verdict, at=at))
    found = store.last_reviews(limit=9, verdicts=(Verdict.APPROVED, Verdict.REJECTED))
    assert [(run, review.verdict) for run, review in found] == [
        (RUN, Verdict.APPROVED),
        (RUN, Verdict.REJECTED),
    ]


def test_events_are_found_by_how_their_decision_begins_and_whom_it_is_about(store: Store) -> None:
    for name, decision, about in (("1", "refuted: a", f"{RUN}-a"), ("2", "not refuted", None)):
        event = made.event(name).model_copy(update={"decision": decision, "candidate_id": about})
        store.put_event(event)
    assert [event.id for event in store.events_saying(RUN, "refuted", "ended")] == ["1"]
    assert store.events_about(RUN, f"{RUN}-a", roles=("coder",)) == ["refuted: a"]
    assert store.events_about(RUN, f"{RUN}-a", roles=("critic",)) == []
