"""The store: what goes in comes out, once, in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings

from memory.errors import BadInput, StoreError
from memory.events import Review, RunCounts, Spend, Verdict
from memory.records import Evaluation, Problem, Program, RunStatus, Status
from memory.store import Store
from tests import strategies
from tests.memory import made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with one run on one problem."""
    with Store(tmp_path / "runs" / "store.db") as opened:
        opened.put_problem(made.problem())
        opened.put_run(made.run())
        yield opened


def put(store: Store, candidate_id: str, *, parents: tuple[str, ...] = ()) -> str:
    """A candidate with a program of its own; returns the program's hash."""
    program_hash = store.put_program(made.program(candidate_id))
    store.put_candidate(made.candidate(candidate_id, program_hash, parents=parents))
    return program_hash


@settings(max_examples=15, deadline=None)
@given(program=strategies.programs, problem=strategies.problems, evaluation=strategies.evaluations())
def test_every_record_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, program: Program, problem: Problem, evaluation: Evaluation
) -> None:
    with Store(tmp_path_factory.mktemp("store") / "s.db") as store:
        program_hash, problem_hash = store.put_program(program), store.put_problem(problem)
        key = {"program_hash": program_hash, "problem_hash": problem_hash}
        verdict = evaluation.model_copy(update=key)
        store.put_evaluation(verdict)
        assert store.program(program_hash) == program
        assert store.problem(problem_hash) == problem
        found = store.find_evaluation(**key, policy_hash=verdict.policy_hash, device=verdict.device)
        assert found == verdict


def test_programs_that_differ_in_the_plan_share_one_source(store: Store) -> None:
    text = "x" * 100_000
    for block in range(32, 1024, 32):
        store.put_program(made.program(text, str(block)))
    assert store.path.with_name("store.db-wal").stat().st_size + store.path.stat().st_size < 1_000_000


def test_putting_everything_twice_changes_nothing(store: Store) -> None:
    for _ in range(2):
        program_hash = put(store, "a")
        store.put_evaluation(made.evaluation(program_hash, median_us=5.0))
        store.put_event(made.event("e"))
        store.put_review(Review(candidate_id="a", verdict=Verdict.APPROVED, at="2026"))
        store.put_run(made.run())
        store.put_pair(made.problem(), made.problem(shape=(2, 8)))
    assert len(store.candidates("run-1")) == len(store.events("run-1")) == len(store.reviews("a")) == 1
    assert len(store.runs()) == 1


def test_the_first_evaluation_of_a_program_stands(store: Store) -> None:
    program_hash = put(store, "a")
    first = store.put_evaluation(made.evaluation(program_hash, median_us=5.0))
    assert store.put_evaluation(made.evaluation(program_hash, median_us=1.0)) == first
    assert store.put_evaluation(made.evaluation(program_hash, policy="soak")).status is Status.INCORRECT


def test_what_an_evaluation_names_must_be_kept_first(store: Store) -> None:
    with pytest.raises(StoreError, match="put that record first"):
        store.put_evaluation(made.evaluation("0" * 64))
    with pytest.raises(StoreError, match="put that record first"):
        store.put_candidate(made.candidate("a", "0" * 64))


def test_an_absent_program_is_named(store: Store) -> None:
    assert not store.has_program("0" * 64)
    with pytest.raises(StoreError, match="no program '000"):
        store.program("0" * 64)


def test_a_candidate_id_cannot_be_taken_twice_but_its_idea_may_be_reworded(store: Store) -> None:
    program_hash = put(store, "a")
    store.put_candidate(
        made.candidate("a", program_hash).model_copy(update={"idea": "the same in other words"})
    )
    with pytest.raises(StoreError, match="taken by another candidate"):
        store.put_candidate(made.candidate("a", program_hash, generation=3))


def test_the_best_candidate_is_the_fastest_that_passed_under_its_latest_policy(store: Store) -> None:
    assert store.best_candidate("run-1") is None
    for name, median_us in (("slow", 9.0), ("fast", 3.0), ("wrong", None), ("equal", 3.0)):
        store.put_evaluation(made.evaluation(put(store, name), median_us=median_us))
    put(store, "waiting")
    best = store.best_candidate("run-1")
    assert best is not None and best.candidate.id == "fast"
    store.put_evaluation(made.evaluation(best.candidate.program_hash, policy="soak"))
    later = store.best_candidate("run-1")
    assert later is not None and later.candidate.id == "equal"
    under_trials = store.best_candidate("run-1", policy_hash=made.POLICY)
    assert under_trials is not None and under_trials.candidate.id == "fast"


def test_candidates_come_in_order_with_their_evaluations_and_counts(store: Store) -> None:
    store.put_evaluation(made.evaluation(put(store, "b"), median_us=2.0))
    store.put_evaluation(made.evaluation(put(store, "a"), status=Status.TIMED_OUT))
    put(store, "c")
    found = [
        (e.candidate.id, e.evaluation.status if e.evaluation else None) for e in store.evaluated("run-1")
    ]
    assert found == [("b", Status.PASSED), ("a", Status.TIMED_OUT), ("c", None)]
    assert store.counts("run-1") == RunCounts(3, 2, {Status.PASSED: 1, Status.TIMED_OUT: 1})
    assert store.counts("run-1", policy_hash="soak") == RunCounts(3, 0, {})


def test_an_evaluation_on_another_device_is_not_the_runs(store: Store) -> None:
    verdict = made.evaluation(put(store, "a"), median_us=2.0)
    store.put_evaluation(verdict.model_copy(update={"device": "cuda"}))
    assert store.best_candidate("run-1") is None


def test_lineage_is_all_ancestors_oldest_first(store: Store) -> None:
    for name, parents in (
        ("a", ()),
        ("b", ()),
        ("c", ("a", "b")),
        ("other", ("b",)),
        ("d", ("c", "a", "unknown")),
    ):
        put(store, name, parents=parents)
    assert [c.id for c in store.lineage("d")] == ["a", "b", "c", "d"]


def test_runs_are_listed_newest_first_and_found_by_prefix(store: Store) -> None:
    for name, created in (("ab-1", "2026-03-01"), ("ab-2", "2026-02-01"), ("a%", "2025-01-01")):
        store.put_run(made.run(name, created=created))
    assert [r.id for r in store.runs()] == ["ab-1", "ab-2", "run-1", "a%"]
    latest = store.latest_run()
    assert latest is not None and latest.id == "ab-1"
    assert store.run("ab-2").id == "ab-2"
    assert store.run("r").id == "run-1"
    with pytest.raises(BadInput, match=r"fits several runs: ab-2, ab-1; give more"):
        store.run("ab")
    for absent in ("ab_1", "%", "zzz"):
        with pytest.raises(BadInput, match="no run has an id that begins"):
            store.run(absent)


def test_a_run_is_updated_in_place_and_its_id_is_not_reused_for_another(store: Store) -> None:
    store.update_run("run-1", status=RunStatus.IMPROVED, best_candidate="a")
    store.put_run(made.run(created="2027-01-01"))
    kept = store.run("run-1")
    assert (kept.status, kept.best_candidate, kept.created) == (
        RunStatus.IMPROVED,
        "a",
        "2026-01-01T00:00:00Z",
    )
    with pytest.raises(StoreError, match="other settings"):
        store.put_run(made.run().model_copy(update={"seed": 8}))


def test_events_come_in_order_and_from_a_point_on_and_their_cost_adds_up(store: Store) -> None:
    for name, tokens in (("z", 10), ("y", None), ("x", 5)):
        assert store.put_event(made.event(name, tokens=tokens))
    assert not store.put_event(made.event("z", tokens=99))
    assert [e.id for e in store.events("run-1")] == ["z", "y", "x"]
    assert [e.id for e in store.events("run-1", after="z")] == ["y", "x"]
    assert store.event("nothing") is None
    first = store.event("z")
    assert first is not None and first.tokens_in == 10
    assert store.spend("run-1") == Spend(calls=2, tokens_in=15, tokens_out=15, cost_usd=0.5)
    assert store.spend("none") == Spend(0, 0, 0, 0.0)


def test_a_call_of_a_model_without_a_price_is_counted_as_such(store: Store) -> None:
    store.put_event(made.event("priced", tokens=10))
    store.put_event(made.event("free", tokens=10).model_copy(update={"cost_usd": None}))
    store.put_event(made.event("silent", tokens=10).model_copy(update={"cost_usd": None, "tokens_in": None}))
    assert store.spend("run-1").unpriced == 1


def test_hints_are_what_people_said_in_order(store: Store) -> None:
    for name in ("b", "a"):
        said = {"agent": "person", "model": None, "role": "operator", "decision": f"try {name}"}
        store.put_event(made.event(name, tokens=None).model_copy(update=said))
    store.put_event(made.event("c", tokens=None))
    assert store.hints("run-1") == ["try b", "try a"]
    assert store.hints("none") == []


def test_the_devices_seconds_are_those_of_verdicts_made_since(store: Store) -> None:
    spent = {"schema": 1.0, "compile": 2.0, "sanitize": 0.25, "correctness": 0.5, "timing": 4.0}
    for name in ("old", "new"):
        verdict = made.evaluation(put(store, name), median_us=2.0).model_copy(update={"seconds": spent})
        before = store.last_evaluation()
        store.put_evaluation(verdict)
    assert store.device_seconds("run-1", after=before) == 4.75
    assert store.device_seconds("run-1", after=0) == 9.5
    assert store.device_seconds("run-1", after=store.last_evaluation()) == 0.0


def test_a_problem_keeps_its_twin(store: Store) -> None:
    twin = made.problem(shape=(2, 8)).model_copy(update={"reduced_from": {"x": (16, 1024)}})
    key = store.put_pair(made.problem(), twin)
    assert store.twin(key) == twin
    assert store.twin(twin.content_hash()) is None
    with pytest.raises(StoreError, match="is kept with twin"):
        store.put_pair(made.problem(), None)


def test_reviews_come_in_order(store: Store) -> None:
    put(store, "a")
    said = [
        Review(candidate_id="a", verdict=Verdict.ANNOTATED, note="odd", at="1"),
        Review(candidate_id="a", verdict=Verdict.REJECTED, at="2"),
    ]
    for review in said:
        store.put_review(review)
    assert store.reviews("a") == said
