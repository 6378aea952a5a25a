"""Asking models under caps: never passed, counted at most where nobody tells, and noted before a request goes out."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.allowance import LEAST_ANSWER, TURN_TOKENS, Caps, most_read
from agents.asking import MAX_REPLY_CHARS, Question
from agents.calls import Call, Message, ModelRequest
from agents.endpoint import Role
from agents.prompting import Prompt
from tests.agents.fakes import LOST, Desk, Line, in_turn, said
from tests.agents.test_asking import DOWN, asked, nobody, number

MOST_READ = most_read(
    ModelRequest("m", (Message("system", "You write."), Message("user", "Write.")), None, None, 1, "{}")
)
"""Tokens that a question's first request may be, at most."""


def test_a_cap_stops_before_the_call_and_says_why() -> None:
    desk = Desk(nobody, caps=Caps(tokens=1000), max_output_tokens=1000)
    assert asked(desk) is None
    (call,) = desk.journal.calls
    assert (
        call.failure
        == desk.asker.exhausted
        == "the cap of 1,000 tokens leaves no room for another model call: 0 are used, and this one may read up to "
        f"{MOST_READ} and needs 1,000 for its answer"
    )
    assert (call.reply, call.tokens_in, call.cost_usd) == ("", None, None)
    assert desk.asker.available("m")


def test_a_cap_in_usd_counts_what_the_answer_may_cost() -> None:
    most = (MOST_READ + 10 * 1000) / 1e6
    desk = Desk(in_turn(said("1", 10, 10)), caps=Caps(cost_usd=most), max_output_tokens=1000)
    assert asked(desk) == 1
    assert asked(desk, "t") is None and r"$0.01" in desk.asker.exhausted
    assert asked(Desk(nobody, caps=Caps(cost_usd=most - 1e-6), max_output_tokens=1000)) is None


def test_what_calls_used_adds_up_to_the_cap_and_no_further() -> None:
    cap = MOST_READ + 1000 + 450
    desk = Desk(lambda _: said("1", 90, 10), caps=Caps(tokens=cap), max_output_tokens=1000)
    assert [asked(desk, f"s{i}") for i in range(10)] == [1] * 5 + [None] * 5


def test_the_last_calls_get_shorter_answers_and_are_found_again_all_the_same() -> None:
    cap = MOST_READ + 10_000
    desk = Desk(lambda _: said("1", 100, 1900), caps=Caps(tokens=cap), max_output_tokens=8000)
    answered = [asked(desk, f"s{i}") for i in range(6)]
    assert answered == [1] * 4 + [None] * 2
    assert [request.max_output_tokens for request in desk.models.requests] == [8000, 8000, 6000, 4000]
    assert cap - 4 * 2000 - MOST_READ < LEAST_ANSWER
    assert [asked(desk.resumed(nobody), f"s{i}") for i in range(4)] == [1] * 4


def test_a_refused_call_costs_nothing_of_the_cap() -> None:
    desk = Desk(in_turn(DOWN, DOWN, "1"), caps=Caps(tokens=MOST_READ + 1000), max_output_tokens=1000)
    assert [asked(desk, f"s{i}") for i in range(3)] == [None, None, 1]


def test_a_request_that_was_lost_counts_at_its_most_for_good() -> None:
    cap = 2 * (MOST_READ + 1000)
    desk = Desk(in_turn(LOST, LOST, "1"), caps=Caps(tokens=cap), max_output_tokens=1000)
    assert asked(desk) is None, "there is no room for a third request"
    (call,) = desk.journal.calls
    assert (call.tokens_in, call.tokens_out) == (2 * MOST_READ, 2000)
    assert call.cost_usd == pytest.approx(2 * (MOST_READ + 10 * 1000) / 1e6)
    assert call.failure == f"m: no room to ask again; counted as {cap:,} tokens"
    assert asked(desk, "t") is None and "leaves no room" in desk.asker.exhausted


def test_every_request_is_noted_before_it_goes_out_with_the_most_it_may_use() -> None:
    noted: list[Call] = []

    def script(_: ModelRequest) -> Line:
        noted[:] = desk.journal.out
        return "1"

    desk = Desk(script)
    asked(desk, "one")
    (at_most,) = noted
    (call,) = desk.journal.calls
    assert at_most.key == call.key and at_most.tokens_out == 1000
    assert (at_most.tokens_in or 0) > len(call.prompt)
    assert desk.journal.out == [], "what is kept is no longer open"


def test_an_answer_after_lost_requests_is_charged_with_them() -> None:
    desk = Desk(in_turn(LOST, said("42", 100, 20)), max_output_tokens=1000)
    assert asked(desk) == 42
    (call,) = desk.journal.calls
    assert (call.tokens_in, call.tokens_out, call.failure) == (MOST_READ + 100, 1020, None)


@pytest.mark.parametrize(
    ("counted", "kept"),
    [
        ((None, None), (MOST_READ, 1000)),
        ((11, None), (11, 1000)),
        ((None, 7), (MOST_READ, 7)),
        ((-1, -1), (MOST_READ, 1000)),
        ((0, 0), (0, 0)),
    ],
)
def test_tokens_that_the_endpoint_does_not_count_are_counted_at_their_most(
    counted: tuple[int | None, int | None], kept: tuple[int, int]
) -> None:
    desk = Desk(in_turn(said("42", *counted)))
    assert asked(desk) == 42
    (call,) = desk.journal.calls
    assert (call.tokens_in, call.tokens_out) == kept
    assert call.cost_usd == pytest.approx((kept[0] + 10 * kept[1]) / 1e6)


def test_a_model_without_a_price_costs_none_and_its_tokens_count() -> None:
    caps = Caps(tokens=MOST_READ + 1000, cost_usd=0.000001)
    desk = Desk(in_turn("1"), ensemble="local", caps=caps)
    assert asked(desk) == 1
    (call,) = desk.journal.calls
    assert call.cost_usd is None and call.tokens_in == 100
    assert asked(desk, "t") is None


def test_a_reply_of_a_megabyte_is_no_answer_and_is_paid() -> None:
    desk = Desk(in_turn(said("x" * (MAX_REPLY_CHARS + 1), 100, 900)))
    assert asked(desk) is None
    (call,) = desk.journal.calls
    assert (call.reply, call.tokens_in, call.tokens_out) == ("", 100, 900)
    assert (
        call.failure == "m: a reply of 400,001 characters; at most 400,000 are taken; counted as 1,000 tokens"
    )


@dataclass(frozen=True)
class Tokenizer:
    """Anything that makes no more tokens than bytes, and a server that tells of them, or does not."""

    density: float
    """Tokens a byte."""
    template: int
    """Tokens around a turn."""
    answer: float
    """Share of the limit that an answer takes."""
    fate: str

    def used(self, request: ModelRequest) -> tuple[int, int]:
        size = sum(len(turn.text.encode()) for turn in request.messages)
        read = int(self.density * size) + self.template * len(request.messages)
        return read, int(self.answer * request.max_output_tokens)


tokenizers = st.builds(
    Tokenizer,
    density=st.sampled_from((0.1, 0.3, 1.0)),
    template=st.integers(0, TURN_TOKENS),
    answer=st.sampled_from((0.0, 0.1, 1.0)),
    fate=st.sampled_from(("answered", "misfit", "uncounted", "lost", "refused")),
)
prompts = st.text(st.sampled_from("a {}\n;µ漢🚀"), max_size=400)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(tokenizers, min_size=1, max_size=8), st.lists(prompts, min_size=1, max_size=6), st.integers(600, 9000),
    st.booleans(),
)  # fmt: skip
def test_no_cap_is_passed_whatever_tokenizer_the_model_has_and_whatever_becomes_of_its_answers(
    fates: list[Tokenizer], texts: list[str], cap: int, in_usd: bool
) -> None:
    """What the provider charges is summed up by the server, also where it tells nobody."""
    charged, requests, lock = [0, 0], [0], threading.Lock()

    def script(request: ModelRequest) -> Line:
        fate = fates[requests[0] % len(fates)]
        requests[0] += 1
        read, written = fate.used(request)
        if fate.fate == "refused":
            return DOWN
        with lock:
            charged[0], charged[1] = charged[0] + read, charged[1] + written
        if fate.fate == "lost":
            return LOST
        count = (None, None) if fate.fate == "uncounted" else (read, written)
        return said("42" if fate.fate != "misfit" else "four", *count)

    usd = cap * 5e-6
    caps = Caps(cost_usd=usd) if in_usd else Caps(tokens=cap)
    desk = Desk(script, caps=caps, max_output_tokens=3000)

    def ask(i: int) -> None:
        question = Question(Prompt(Role.CODER, "You write.", texts[i % len(texts)], "h"), f"s{i}", 3)
        desk.asker.ask(question, number, str)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    cost = (charged[0] + 10 * charged[1]) / 1e6
    assert cost <= usd + 1e-12 if in_usd else sum(charged) <= cap
    # What is counted is never less than what was charged.
    counted = sum((call.tokens_in or 0) + (call.tokens_out or 0) for call in desk.journal.calls)
    assert sum(charged) <= counted
