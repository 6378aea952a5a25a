"""Agents' steps in the store: filtered, counted, paged, and what followed one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.store import Store
from memory.store_traces import StepFilter
from tests.memory import made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store.db") as opened:
        opened.put_problem(made.problem())
        for run_id in ("run-1", "run-2"):
            opened.put_run(made.run(run_id))
        yield opened


def put(store: Store, name: str, *, tokens: int | None = None, **fields: object) -> None:
    store.put_event(made.event(name, tokens=tokens).model_copy(update=fields))


def ids(store: Store, where: StepFilter | None = None, **page: int) -> list[str]:
    return [step.id for step in store.steps("run-1", where, **page)]


def test_steps_come_in_order_a_page_at_a_time_and_of_one_run(store: Store) -> None:
    for name in "abc":
        put(store, name)
    put(store, "other", run_id="run-2")
    assert ids(store) == ["a", "b", "c"]
    assert ids(store, limit=2) == ["a", "b"] and ids(store, limit=2, offset=2) == ["c"]
    assert store.step("other") is not None and store.step("nobody") is None


def test_text_is_found_in_any_case_and_signs_of_a_pattern_stand_for_themselves(store: Store) -> None:
    put(store, "a", decision="Use 100% of it")
    put(store, "b", tokens=1, prompt="a_b \\ c", reply="x", prompt_hash="h")
    assert ids(store, StepFilter(text="use 100% OF")) == ["a"]
    assert ids(store, StepFilter(text="a_b \\")) == ["b"]
    assert ids(store, StepFilter(text="a%b")) == ids(store, StepFilter(text="aab")) == []


def test_failures_are_steps_without_a_result_and_those_whose_program_was_refused(store: Store) -> None:
    good, bad = made.program(source="good"), made.program(source="bad")
    for name, program, median_us in (("good", good, 3.0), ("bad", bad, None)):
        digest = store.put_program(program)
        store.put_candidate(made.candidate(name, digest))
        store.put_evaluation(made.evaluation(digest, median_us=median_us))
    put(store, "a", candidate_id="good")
    put(store, "b", candidate_id="bad")
    put(store, "looked at it", candidate_id="bad", role="profiler")
    put(store, "c", failure="silent")
    put(store, "d", decision="no program for 1: x")
    where = StepFilter(failed=True)
    assert ids(store, where) == ["b", "c", "d"] and store.totals("run-1", where).steps == 3
    assert [step.failed for step in store.steps("run-1")] == [False, True, False, True, True]
    assert ids(store, StepFilter(role="profiler", candidate_id="bad")) == ["looked at it"]


def test_totals_are_of_models_alone_and_say_what_has_no_price(store: Store) -> None:
    put(store, "a")
    put(store, "b", tokens=10)
    put(store, "c", tokens=5, cost_usd=None)
    found = store.totals("run-1")
    assert (found.steps, found.calls, found.tokens_in, found.cost_usd) == (3, 2, 15, 0.25)
    assert (found.unpriced, found.waited_s) == (1, 1.0)


def test_what_followed_a_step_is_of_its_candidate_and_the_repairs_of_it(store: Store) -> None:
    put(store, "a", candidate_id="x*")
    put(store, "b", candidate_id="x*-r1")
    put(store, "c", candidate_id="xy-r1")
    put(store, "d", decision="no program for x: y")
    put(store, "e", role="planner")
    first = store.step("a")
    assert first is not None
    assert [s.id for s in store.steps_after("run-1", first)] == ["b"]
    assert [s.id for s in store.steps_after("run-1", first, or_saying="no program for x:")] == ["b", "d"]
    plain = store.step("d")
    assert plain is not None and store.steps_after("run-1", plain) == []
