"""Caps on tokens and cost: never passed by any number of threads, and nothing spent by what was refused or failed."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.allowance import Allowance, CapReached, Caps


def spend(allowance: Allowance, worst: int, used: int) -> bool:
    """One call; False where it was refused."""
    try:
        with allowance.call(worst, None) as bill:
            bill.tokens = used
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
        with pytest.raises(OSError, match="line cut"), allowance.call(100, 1.0):
            raise OSError("line cut")
    assert spend(allowance, 100, 100)


def test_the_cap_in_usd_holds_and_says_so() -> None:
    allowance = Allowance(Caps(cost_usd=1.0))
    with allowance.call(10, 0.75) as bill:
        bill.cost_usd = 0.75
    with pytest.raises(CapReached, match=r"cap of \$1\.00"), allowance.call(10, 0.5):
        raise AssertionError("let through")
    with allowance.call(10, 0.25):
        pass


def test_a_model_without_a_price_counts_against_the_tokens_alone() -> None:
    allowance = Allowance(Caps(tokens=100, cost_usd=0.01))
    assert spend(allowance, 60, 60)
    assert not spend(allowance, 60, 60)
    assert "tokens" in allowance.exhausted


def test_what_earlier_processes_spent_counts() -> None:
    assert not spend(Allowance(Caps(tokens=100), spent_tokens=95), 10, 1)
    with pytest.raises(CapReached), Allowance(Caps(cost_usd=1.0), spent_usd=0.9).call(1, 0.2):
        raise AssertionError("let through")


def test_without_caps_everything_is_let_through() -> None:
    allowance = Allowance(Caps())
    assert spend(allowance, 10**12, 10**12)
    assert allowance.exhausted == ""


def test_a_call_that_would_fit_once_others_turn_out_cheaper_waits_for_them() -> None:
    allowance = Allowance(Caps(tokens=100))
    outcome: list[bool] = []
    waiting = threading.Thread(target=lambda: outcome.append(spend(allowance, 60, 10)))
    with allowance.call(60, None) as bill:
        waiting.start()
        waiting.join(0.1)
        assert waiting.is_alive() and allowance.exhausted == ""
        bill.tokens = 40
    waiting.join(10)
    assert outcome == [True]


def test_a_call_that_waited_is_refused_where_the_others_used_all_they_held() -> None:
    allowance = Allowance(Caps(tokens=100))
    outcome: list[bool] = []
    waiting = threading.Thread(target=lambda: outcome.append(spend(allowance, 60, 10)))
    with allowance.call(60, None) as bill:
        waiting.start()
        bill.tokens = 60
    waiting.join(10)
    assert outcome == [False]


def test_fractions_of_a_dollar_that_do_not_add_up_leave_nobody_waiting() -> None:
    allowance = Allowance(Caps(cost_usd=0.3))
    for _ in range(3):
        with allowance.call(1, 0.1):
            pass
    with allowance.call(1, 0.3):
        pass


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
                with allowance.call(worst, None) as bill:
                    with lock:
                        held += worst
                        passed = passed or spent + held > cap
                    bill.tokens = int(worst * share)
                    with lock:
                        held -= worst
                        spent += bill.tokens
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
