"""Caps on tokens and cost: never passed by any number of threads, and nothing spent by what was refused or failed."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.allowance import REQUEST_TOKENS, TURN_TOKENS, Allowance, CapReached, Caps, Need, most_read
from agents.calls import Message, ModelRequest
from agents.prices import Price

CENTS = Price(input=1e4, output=1e4)
"""A cent a token."""


def spend(allowance: Allowance, worst: int, used: int) -> bool:
    """One call; False where it was refused."""
    try:
        with allowance.call(Need(worst, 0)) as bill:
            bill.settle(used, 0)
    except CapReached:
        return False
    return True


def test_a_call_that_fits_exactly_is_let_through_and_the_next_token_is_not() -> None:
    allowance = Allowance(Caps(tokens=100))
    assert spend(allowance, 100, 100)
    assert not spend(allowance, 1, 1)
    assert "cap of 100 tokens leaves no room" in allowance.exhausted


def test_what_was_reserved_and_not_used_is_free_again() -> None:
    allowance = Allowance(Caps(tokens=100))
    assert all(spend(allowance, 90, 1) for _ in range(11))
    assert not spend(allowance, 90, 1)
    assert spend(allowance, 89, 1)


def test_a_refused_call_spends_nothing() -> None:
    allowance = Allowance(Caps(tokens=100))
    assert not spend(allowance, 101, 1)
    assert spend(allowance, 100, 100)


def test_a_failed_call_gives_its_room_back() -> None:
    allowance = Allowance(Caps(tokens=100, cost_usd=1.0))
    for _ in range(5):
        with pytest.raises(OSError, match="line cut"), allowance.call(Need(100, 0, CENTS)):
            raise OSError("line cut")
    assert spend(allowance, 100, 100)


def test_the_cap_in_usd_holds_and_says_so() -> None:
    allowance = Allowance(Caps(cost_usd=1.0))
    with allowance.call(Need(75, 0, CENTS)) as bill:
        bill.settle(75, 0)
    with (
        pytest.raises(
            CapReached, match=r"cap of \$1\.00 .*: \$0\.7500 is used, and this one may cost \$0\.5000"
        ),
        allowance.call(Need(40, 10, CENTS)),
    ):
        raise AssertionError("let through")
    with allowance.call(Need(15, 10, CENTS)) as bill:
        assert bill.limit == 10


def test_the_last_answers_are_shorter_down_to_the_least_that_is_worth_asking_for() -> None:
    allowance = Allowance(Caps(tokens=20_000))
    limits: list[int] = []
    with pytest.raises(CapReached, match="needs 2,048 for its answer"):
        while True:
            with allowance.call(Need(1000, 8000)) as bill:
                limits.append(bill.limit)
                bill.settle(1000, 2500)
    assert limits == [8000, 8000, 8000, 8000, 5000]


def test_a_cap_in_usd_shortens_answers_too() -> None:
    allowance = Allowance(Caps(cost_usd=50.0), spent_usd=10.0)
    with allowance.call(Need(1000, 8000, CENTS)) as bill:
        assert bill.limit == 3000


def test_what_costs_nothing_is_let_through_by_any_cap_in_usd() -> None:
    free = Price(input=0, output=0)
    with Allowance(Caps(cost_usd=0.01)).call(Need(10**9, 10**6, free)) as bill:
        assert bill.limit == 10**6
    only_read = Price(input=1e4, output=0)
    with Allowance(Caps(cost_usd=1.0)).call(Need(99, 10**6, only_read)) as bill:
        assert bill.limit == 10**6
    with pytest.raises(CapReached), Allowance(Caps(cost_usd=1.0)).call(Need(101, 10**6, only_read)):
        raise AssertionError("let through")


def test_a_lost_request_is_counted_at_its_most_and_another_is_let_through_where_it_fits() -> None:
    allowance = Allowance(Caps(tokens=250))
    with allowance.call(Need(60, 40)) as bill:
        assert allowance.lost(bill)
        assert not allowance.lost(bill)
    assert (bill.tokens_in, bill.tokens_out) == (120, 80)
    assert spend(allowance, 50, 50) and not spend(allowance, 1, 1)


def test_room_for_another_request_is_not_what_others_hold() -> None:
    allowance = Allowance(Caps(tokens=250))
    with allowance.call(Need(100, 0)) as other, allowance.call(Need(100, 0)) as bill:
        assert not allowance.lost(bill)
        other.settle(10, 0)
    assert spend(allowance, 140, 140)


def test_the_most_that_is_read_is_a_token_a_byte_with_the_schema_and_the_template() -> None:
    turns = (Message("system", "µ漢"), Message("user", "ab"))
    request = ModelRequest("m", turns, None, None, 100, schema='{"a": 1}')
    assert most_read(request) == 2 + 3 + 2 + 8 + 2 * TURN_TOKENS + REQUEST_TOKENS
    ligature = ModelRequest("m", (Message("user", "\ufdfa"),), None, None, 100)
    assert most_read(ligature) == 33 + TURN_TOKENS + REQUEST_TOKENS, (
        "18 letters, to a tokenizer that takes it apart"
    )
    half = ModelRequest("m", (Message("user", "\ud800"),), None, None, 100)
    assert most_read(half) == 3 + TURN_TOKENS + REQUEST_TOKENS


def test_a_model_without_a_price_counts_against_the_tokens_alone() -> None:
    allowance = Allowance(Caps(tokens=100, cost_usd=0.01))
    assert spend(allowance, 60, 60)
    assert not spend(allowance, 60, 60)
    assert "tokens" in allowance.exhausted


def test_what_earlier_processes_spent_counts() -> None:
    assert not spend(Allowance(Caps(tokens=100), spent_tokens=95), 10, 1)
    with pytest.raises(CapReached), Allowance(Caps(cost_usd=1.0), spent_usd=0.9).call(Need(20, 0, CENTS)):
        raise AssertionError("let through")


def test_without_caps_everything_is_let_through() -> None:
    allowance = Allowance(Caps())
    assert spend(allowance, 10**12, 10**12)
    assert allowance.exhausted == ""


def test_a_call_that_would_fit_once_others_turn_out_cheaper_waits_for_them() -> None:
    allowance = Allowance(Caps(tokens=100))
    outcome: list[bool] = []
    waiting = threading.Thread(target=lambda: outcome.append(spend(allowance, 60, 10)))
    with allowance.call(Need(60, 0)) as bill:
        waiting.start()
        waiting.join(0.1)
        assert waiting.is_alive() and allowance.exhausted == ""
        bill.settle(40, 0)
    waiting.join(10)
    assert outcome == [True]


def test_a_call_that_waited_is_refused_where_the_others_used_all_they_held() -> None:
    allowance = Allowance(Caps(tokens=100))
    outcome: list[bool] = []
    waiting = threading.Thread(target=lambda: outcome.append(spend(allowance, 60, 10)))
    with allowance.call(Need(60, 0)) as bill:
        waiting.start()
        bill.settle(60, 0)
    waiting.join(10)
    assert outcome == [False]


def test_fractions_of_a_dollar_that_do_not_add_up_take_nothing_away() -> None:
    allowance = Allowance(Caps(cost_usd=0.3))
    tenth = Price(input=1e5, output=1e5)
    for _ in range(3):
        with allowance.call(Need(0, 1, tenth)) as bill:
            assert bill.limit == 1
            bill.settle(0, 1)
    with pytest.raises(CapReached), allowance.call(Need(0, 1, tenth)):
        raise AssertionError("let through")


def test_a_call_waits_for_others_rather_than_ask_for_a_shorter_answer() -> None:
    allowance = Allowance(Caps(tokens=10_000))
    limits: list[int] = []

    def work() -> None:
        with allowance.call(Need(0, 8000)) as bill:
            limits.append(bill.limit)

    waiting = threading.Thread(target=work)
    with allowance.call(Need(0, 6000)) as bill:
        waiting.start()
        waiting.join(0.1)
        assert waiting.is_alive()
        bill.settle(0, 1000)
    waiting.join(10)
    assert limits == [8000]


calls = st.lists(st.tuples(st.integers(1, 60), st.floats(0, 1)), min_size=1, max_size=12)


@settings(max_examples=25, deadline=None)
@given(st.lists(calls, min_size=2, max_size=6), st.integers(20, 200))
def test_a_cap_is_never_passed_however_many_threads_call(
    plans: Sequence[Sequence[tuple[int, float]]], cap: int
) -> None:
    allowance = Allowance(Caps(tokens=cap))
    lock = threading.Lock()
    spent, held, passed = 0, 0, False

    def work(plan: Sequence[tuple[int, float]]) -> None:
        nonlocal spent, held, passed
        for worst, share in plan:
            try:
                with allowance.call(Need(worst, 0)) as bill:
                    with lock:
                        held += worst
                        passed = passed or spent + held > cap
                    used = int(worst * share)
                    with lock:
                        held -= worst
                        spent += used
                    bill.settle(used, 0)
            except CapReached:
                pass

    threads = [threading.Thread(target=work, args=(plan,)) for plan in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert not passed and spent <= cap
    # What is left can still be used to the last token.
    assert spent == cap or spend(allowance, cap - spent, 0)
