"""The journal over a real store: an answer is found by its key for ever, a failure never hides one, money adds up."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.calls import Call, ModelFailed
from agents.endpoint import Role
from graph.budget import Deadline
from graph.journal import DIED, StoreJournal
from memory.store import Store
from tests.agents.fakes import Desk, Line, in_turn
from tests.agents.test_asking import asked
from tests.memory import made

CALL = Call(
    key="a" * 64, role=Role.CODER, model="m", generation=3, candidate_id="run-1-003-001", move="improve",
    prompt="[user]\nWrite.", prompt_hash="hash-1", reply="42", tokens_in=2000, tokens_out=100, cost_usd=0.003,
    latency_s=1.5, decision="said 42", failure=None,
)  # fmt: skip


class Clock:
    """A second later at every look."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at


def opened(store: Store, run_id: str = "run-1") -> StoreJournal:
    return StoreJournal(store, run_id, Clock(), Deadline())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with two runs."""
    with Store(tmp_path / "store.db") as found:
        found.put_problem(made.problem())
        found.put_run(made.run("run-1"))
        found.put_run(made.run("run-2"))
        yield found


def test_a_call_comes_back_whole_by_its_key_and_by_no_other(store: Store) -> None:
    journal = opened(store)
    assert journal.answered(CALL.key) is None
    journal.keep(CALL, answered=True)
    assert journal.answered(CALL.key) == CALL
    assert journal.answered("b" * 64) is None


def test_another_process_finds_it_and_another_run_does_not(store: Store) -> None:
    opened(store).keep(CALL, answered=True)
    with Store(store.path) as other:
        assert opened(other).answered(CALL.key) == CALL
        assert opened(other, "run-2").answered(CALL.key) is None


def test_the_event_says_everything_of_the_call(store: Store) -> None:
    opened(store).keep(CALL, answered=True)
    (event,) = store.events("run-1")
    assert (event.role, event.agent, event.model, event.generation) == ("coder", "model", "m", 3)
    assert (event.prompt, event.reply, event.prompt_hash) == (CALL.prompt, "42", "hash-1")
    assert (event.tokens_in, event.tokens_out, event.cost_usd, event.latency_s) == (2000, 100, 0.003, 1.5)
    assert (event.decision, event.failure, event.candidate_id) == ("said 42", None, "run-1-003-001")
    assert event.at == "2026-01-01T00:00:01+00:00"


def test_an_unanswered_call_is_kept_and_found_by_no_key(store: Store) -> None:
    journal = opened(store)
    down = replace(CALL, reply="", tokens_in=None, tokens_out=None, cost_usd=None, failure="out of reach")
    journal.keep(down, answered=False)
    journal.keep(down, answered=False)
    assert journal.answered(CALL.key) is None
    assert [event.failure for event in store.events("run-1")] == ["out of reach"] * 2
    journal.keep(CALL, answered=True)
    assert journal.answered(CALL.key) == CALL


def test_of_two_answers_to_one_request_the_first_stands_and_is_counted_once(store: Store) -> None:
    opened(store).keep(CALL, answered=True)
    opened(store).keep(replace(CALL, reply="43", cost_usd=1.0), answered=True)
    found = opened(store).answered(CALL.key)
    assert found is not None and found.reply == "42"
    assert store.spend("run-1").cost_usd == 0.003


def test_what_was_spent_is_the_sum_of_the_calls_of_models(store: Store) -> None:
    journal = opened(store)
    journal.keep(CALL, answered=True)
    journal.keep(replace(CALL, key="b" * 64, cost_usd=None), answered=True)
    journal.keep(replace(CALL, key="c" * 64, tokens_in=None, tokens_out=None, cost_usd=None), answered=False)
    spent = store.spend("run-1")
    assert (spent.calls, spent.tokens, spent.cost_usd, spent.unpriced) == (3, 4200, 0.003, 1)
    assert store.spend("run-2").calls == 0


def test_a_request_that_died_with_its_process_counts_at_its_most_and_once(store: Store) -> None:
    at_most = replace(CALL, reply="", tokens_in=9000, tokens_out=16384, cost_usd=0.2, slip="first")
    opened(store).sent(at_most)
    opened(store).sent(at_most)  # sent again after a broken connection: both may have been charged
    opened(store, "run-2").sent(replace(at_most, slip="another run's"))
    assert store.spend("run-1").calls == 0 and store.events("run-1") == []
    with Store(store.path) as later:
        assert opened(later).count_lost() == 2
        assert opened(later).count_lost() == 0
        spent = later.spend("run-1")
        assert (spent.calls, spent.tokens, spent.cost_usd) == (2, 2 * (9000 + 16384), 0.4)
        assert opened(later).answered(CALL.key) is None, "it may be asked again"
        event = later.events("run-1")[0]
        assert event.failure == f"{DIED}; counted as 25,384 tokens" and event.prompt == CALL.prompt
        assert later.spend("run-2").calls == 0


@pytest.mark.parametrize("answered", [True, False])
def test_a_call_that_was_kept_is_not_counted_as_lost(store: Store, answered: bool) -> None:
    journal = opened(store)
    journal.sent(replace(CALL, tokens_in=9000, tokens_out=16384, slip="first"))
    journal.keep(replace(CALL, slip="first"), answered=answered)
    assert journal.count_lost() == 0
    assert store.spend("run-1").tokens == 2100


def test_a_store_from_before_requests_were_noted_is_opened_and_notes_them(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Store(path) as old:
        old.put_problem(made.problem())
        old.put_run(made.run("run-1"))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE requests")
    with Store(path) as store:
        opened(store).sent(replace(CALL, slip="first"))
        assert opened(store).count_lost() == 1


def test_a_misfit_is_an_answer_with_what_was_wrong(store: Store) -> None:
    misfit = replace(CALL, decision="an answer that does not fit; asked again", failure="no number")
    opened(store).keep(misfit, answered=True)
    assert opened(store).answered(CALL.key) == misfit


def test_the_time_left_is_the_runs(store: Store) -> None:
    deadline = Deadline(lambda: 100.0)
    journal = StoreJournal(store, "run-1", Clock(), deadline)
    assert journal.seconds_left() == float("inf")
    deadline.set(30.0)
    assert journal.seconds_left() == 30.0


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    prompt=st.text(st.characters(exclude_categories=["Cs"])),
    reply=st.text(st.characters(exclude_categories=["Cs"])),
    tokens=st.none() | st.integers(0, 10**9),
    role=st.sampled_from(Role),
    failure=st.none() | st.text(st.characters(exclude_categories=["Cs"])),
    key=st.integers(0, 2**256 - 1).map(lambda n: f"{n:064x}"),
)
def test_any_text_is_kept_as_it_is(
    store: Store, prompt: str, reply: str, tokens: int | None, role: Role, failure: str | None, key: str
) -> None:
    call = replace(CALL, key=key, prompt=prompt, reply=reply, tokens_in=tokens, role=role, failure=failure)
    journal = opened(store)
    if journal.answered(key) is None:
        journal.keep(call, answered=True)
        assert journal.answered(key) == call


def over(store: Store, *lines: Line) -> Desk:
    """A desk whose calls go into the store."""
    return Desk(in_turn(*lines), book=opened(store))


def test_a_run_that_resumes_over_the_store_asks_nothing_that_was_answered(store: Store) -> None:
    first = over(store, "no number", "42", ModelFailed("m: gone", hopeless=False))
    assert asked(first, "s") == 42 and asked(first, "t") is None
    with Store(store.path) as other:
        later = over(other, "7")
        assert asked(later, "s") == 42 and later.models.requests == []
        assert asked(later, "t") == 7
        failures = [event.failure for event in other.events("run-1")]
        assert failures == ["'no number' is no number", None, "m: gone", None]
        assert other.spend("run-1").calls == 4
