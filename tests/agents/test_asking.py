"""Asking models: misfits shown and bounded, answers paid once, caps kept, silence noticed, all of it written down."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.answers import Misfit
from agents.asking import GIVEN_UP_AFTER, MISFITS, Answer, Question
from agents.calls import Message, ModelFailed, ModelRequest
from agents.endpoint import Casting, Role, parse_models
from agents.prompting import Prompt
from tests.agents.fakes import Desk, Line, MemoryJournal, in_turn, said, silent

PROMPT = Prompt(Role.CODER, "You write.", "Write.", "hash-1")
DOWN = ModelFailed("m: out of reach", hopeless=False)
WRONG_KEY = ModelFailed("m: the endpoint answered 401; check OPENAI_API_KEY", hopeless=True)


def number(text: str) -> int:
    if not text.isdigit():
        raise Misfit(f"{text!r} is no number")
    return int(text)


def asked(
    desk: Desk, slot: str = "s", model: str | None = None, after: Answer | None = None, remark: str = ""
) -> int | None:
    """What comes of one question for a number."""
    question = Question(PROMPT, slot, 3, candidate_id="run-003-001", model=model, schema="{}")
    answered = desk.asker.ask(question, number, lambda n: f"said {n}", after=after, remark=remark)
    return answered[0] if answered else None


def nobody(request: ModelRequest) -> Line:
    raise AssertionError(f"asked again: {request.messages[-1].text}")


# --- answers and misfits --------------------------------------------------------------------------------------


def test_an_answer_that_fits_is_one_request_and_one_event_with_all_it_took() -> None:
    desk = Desk(in_turn(said("42", 2000, 100)))
    assert asked(desk) == 42
    (call,) = desk.journal.calls
    assert (call.role, call.model, call.generation, call.candidate_id) == (Role.CODER, "m", 3, "run-003-001")
    assert call.prompt == "[system]\nYou write.\n\n[user]\nWrite." and call.prompt_hash == "hash-1"
    assert (call.reply, call.decision, call.failure) == ("42", "said 42", None)
    assert (call.tokens_in, call.tokens_out, call.latency_s) == (2000, 100, 0.5)
    assert call.cost_usd == pytest.approx((2000 * 1.0 + 100 * 10.0) / 1e6)


def test_a_request_carries_the_roles_settings_and_the_time_that_is_left() -> None:
    casting = {Role.CODER: Casting(parse_models("m"), temperature=0.3, effort="low")}
    desk = Desk(in_turn("1"), casting=casting, max_output_tokens=777, journal=MemoryJournal(seconds=12.5))
    asked(desk)
    (request,) = desk.models.requests
    assert (request.temperature, request.effort, request.max_output_tokens) == (0.3, "low", 777)
    assert request.messages == (Message("system", "You write."), Message("user", "Write."))
    assert request.schema == "{}" and desk.models.deadlines == [12.5]


def test_a_misfit_is_shown_to_the_model_with_the_exact_complaint() -> None:
    desk = Desk(in_turn("forty-two", "42"))
    assert asked(desk) == 42
    turns = desk.models.requests[1].messages
    assert turns[:2] == desk.models.requests[0].messages
    assert turns[2] == Message("assistant", "forty-two")
    assert turns[3] == Message("user", "That does not fit: 'forty-two' is no number\nAnswer again, whole.")
    assert [(c.decision, c.failure) for c in desk.journal.calls] == [
        ("an answer that does not fit; asked again", "'forty-two' is no number"),
        ("said 42", None),
    ]


def test_misfits_end_after_a_few_turns_and_each_was_paid_and_kept() -> None:
    desk = Desk(in_turn(*["no"] * 10))
    assert asked(desk) is None
    assert len(desk.models.requests) == len(desk.journal.calls) == MISFITS + 1 == 3
    assert [c.decision.rsplit("; ")[1] for c in desk.journal.calls] == [
        "asked again",
        "asked again",
        "given up",
    ]
    assert all(call.tokens_in and call.cost_usd for call in desk.journal.calls)
    assert desk.asker.available("m"), "a model that talks nonsense is not silent"


def test_an_answer_that_broke_off_is_told_to_be_shorter() -> None:
    desk = Desk(in_turn(said("forty-t", 10, 1000, cut_off=True), "42"))
    assert asked(desk) == 42
    assert desk.failures[0] == "the answer broke off at 1000 tokens; be shorter. 'forty-t' is no number"


def test_an_answer_that_broke_off_and_fits_all_the_same_is_an_answer() -> None:
    assert asked(Desk(in_turn(said("42", cut_off=True)))) == 42


def test_a_remark_goes_on_with_the_conversation() -> None:
    desk = Desk(in_turn("41", "42"))
    question = Question(PROMPT, "s", 3)
    first = desk.asker.ask(question, number, str)
    assert first is not None
    assert asked(desk, after=first[1], remark="One more.") == 42
    assert [turn.text for turn in desk.models.requests[1].messages[2:]] == ["41", "One more."]


# --- paid once ------------------------------------------------------------------------------------------------


def test_an_answered_request_is_not_sent_again_by_whoever_resumes_the_run() -> None:
    desk = Desk(in_turn("42"))
    assert asked(desk) == 42
    assert asked(desk.resumed(nobody)) == 42
    assert len(desk.journal.calls) == 1


def test_neither_are_the_turns_of_misfits_before_it() -> None:
    desk = Desk(in_turn("x", "y", "42"))
    assert asked(desk) == 42
    assert asked(desk.resumed(nobody)) == 42
    given_up = Desk(in_turn("x", "y", "z"))
    assert asked(given_up) is None
    assert asked(given_up.resumed(nobody)) is None


def test_a_run_that_was_killed_between_two_turns_goes_on_with_the_second() -> None:
    desk = Desk(in_turn("x", DOWN))
    assert asked(desk) is None
    later = desk.resumed(in_turn("42"))
    assert asked(later) == 42
    assert later.models.requests[0].messages[2] == Message("assistant", "x")


def test_a_further_turn_is_found_again_too() -> None:
    desk = Desk(in_turn("41", "42"))

    def both(desk: Desk) -> int | None:
        first = desk.asker.ask(Question(PROMPT, "s", 3), number, str)
        assert first is not None
        return asked(desk, after=first[1], remark="One more.")

    assert both(desk) == 42
    assert both(desk.resumed(nobody)) == 42


def test_an_unanswered_request_is_sent_again() -> None:
    desk = Desk(in_turn(DOWN))
    assert asked(desk) is None
    assert asked(desk.resumed(in_turn("42"))) == 42


def test_the_model_that_answered_is_found_again_although_another_is_drawn_first() -> None:
    """The first choice went silent in the process before; the one that resumes knows nothing of that."""

    def script(request: ModelRequest) -> Line:
        return silent(request) if request.model == "a" else "7"

    desk = Desk(script, ensemble="a:1000,b:1")
    for i in range(GIVEN_UP_AFTER):
        assert asked(desk, f"s{i}") is None
    assert asked(desk, "t") == 7 and desk.models.asked[-1] == "b"
    fresh = Desk(script, ensemble="a:1000,b:1")
    assert asked(fresh, "t") is None and fresh.models.asked == ["a"]
    assert asked(desk.resumed(nobody), "t") == 7


def test_an_answer_is_found_again_after_its_model_went_silent() -> None:
    desk = Desk(in_turn("42", *[DOWN] * GIVEN_UP_AFTER))
    assert asked(desk, "kept", model="m") == 42
    for i in range(GIVEN_UP_AFTER):
        assert asked(desk, f"s{i}") is None
    assert not desk.asker.available("m")
    assert asked(desk, "kept", model="m") == 42


def test_an_answer_that_no_longer_fits_is_taken_up_with_its_complaint() -> None:
    desk = Desk(in_turn("42"))
    assert asked(desk) == 42
    later = desk.resumed(in_turn("43"))

    def odd(text: str) -> int:
        if int(text) % 2 == 0:
            raise Misfit("give an odd number")
        return int(text)

    answered = later.asker.ask(Question(PROMPT, "s", 3, schema="{}"), odd, str)
    assert answered is not None and answered[0] == 43
    assert "give an odd number" in later.models.requests[0].messages[-1].text


def test_equal_prompts_of_two_slots_or_seeds_are_two_requests() -> None:
    desk = Desk(in_turn("1", "2"))
    assert (asked(desk, "s"), asked(desk, "t")) == (1, 2)
    other_seed = Desk(in_turn("3"), seed="8", journal=desk.journal)
    assert asked(other_seed) == 3


def test_another_temperature_is_another_request() -> None:
    desk = Desk(in_turn("1"))
    assert asked(desk) == 1
    warm = {Role.CODER: Casting(parse_models("m"), temperature=1.0)}
    assert asked(Desk(in_turn("2"), casting=warm, journal=desk.journal)) == 2


# --- who is asked ---------------------------------------------------------------------------------------------


def test_an_ensemble_is_drawn_from_by_slot_and_the_same_for_a_seed() -> None:
    drawn = [Desk(lambda _: "1", ensemble="a,b") for _ in range(2)]
    for desk in drawn:
        for i in range(40):
            asked(desk, f"s{i}")
    assert drawn[0].models.asked == drawn[1].models.asked
    assert 8 < drawn[0].models.asked.count("a") < 32


def test_a_question_for_one_model_is_asked_of_no_other() -> None:
    desk = Desk(in_turn(DOWN), ensemble="a,b")
    assert asked(desk, model="c") is None
    assert desk.models.asked == ["c"]


def test_a_hopeless_failure_silences_a_model_at_once_and_that_model_alone() -> None:
    def script(request: ModelRequest) -> Line:
        return WRONG_KEY if request.model == "a" else "1"

    desk = Desk(script, ensemble="a:1000,b:0.001")
    assert asked(desk, "first") is None
    assert not desk.asker.available("a") and desk.asker.available("b")
    assert [asked(desk, f"s{i}") for i in range(3)] == [1, 1, 1]
    assert desk.models.asked == ["a", "b", "b", "b"]


def test_three_passing_failures_in_a_row_silence_a_model() -> None:
    desk = Desk(silent)
    for i in range(GIVEN_UP_AFTER):
        assert desk.asker.available("m")
        assert asked(desk, f"s{i}") is None
    assert not desk.asker.available("m")
    assert asked(desk, "later") is None and asked(desk, "later", model="m") is None
    assert len(desk.models.requests) == GIVEN_UP_AFTER == 3


def test_an_answer_in_between_starts_the_count_again() -> None:
    desk = Desk(in_turn(DOWN, DOWN, "1", DOWN, DOWN, "2"))
    assert [asked(desk, f"s{i}") for i in range(6)] == [None, None, 1, None, None, 2]


def test_a_model_that_falls_silent_is_not_asked_for_a_further_turn() -> None:
    desk = Desk(in_turn("x", WRONG_KEY))
    assert asked(desk) is None
    assert len(desk.models.requests) == 2


# --- the journal ----------------------------------------------------------------------------------------------


def test_every_failed_call_leaves_an_event_with_the_reason() -> None:
    desk = Desk(in_turn(DOWN, WRONG_KEY))
    asked(desk, "s")
    asked(desk, "t")
    assert desk.failures == ["m: out of reach", "m: the endpoint answered 401; check OPENAI_API_KEY"]
    for call in desk.journal.calls:
        assert call.decision == "no answer; the rules go on without it"
        assert call.prompt and call.model == "m" and call.tokens_in is None and call.cost_usd is None


def test_a_reply_that_is_no_text_is_made_one_that_can_be_kept() -> None:
    desk = Desk(in_turn("half \ud800 a pair", "42"))
    assert asked(desk) == 42
    assert desk.journal.calls[0].reply == "half ? a pair"
    assert asked(desk.resumed(nobody)) == 42


def test_threads_share_an_asker() -> None:
    desk = Desk(lambda request: str(len(request.messages)))
    threads = [threading.Thread(target=asked, args=(desk, f"s{i}")) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(desk.journal.by_key) == len(desk.models.requests) == 16


lines = st.lists(st.sampled_from(["42", "no", DOWN, WRONG_KEY]), min_size=9, max_size=9)
slots = st.lists(st.sampled_from("stuv"), min_size=1, max_size=6)


@settings(max_examples=200, deadline=None)
@given(lines, lines, slots)
def test_however_a_server_behaves_every_request_is_kept_and_no_answer_is_paid_twice(
    before: list[Line], after: list[Line], order: list[str]
) -> None:
    """The journal fails on an answer that it has already."""
    desk = Desk(_cycle(before), ensemble="m,n")
    found = [asked(desk, slot) for slot in order]
    assert len(desk.journal.calls) == len(desk.models.requests) <= len(order) * (MISFITS + 1)
    later = desk.resumed(_cycle(after))
    again = [asked(later, slot) for slot in order]
    assert len(desk.journal.calls) == len(desk.models.requests) + len(later.models.requests)
    # What was answered stays answered.
    assert all(second == first for first, second in zip(found, again, strict=True) if first is not None)


def _cycle(lines: list[Line]) -> Callable[[ModelRequest], Line]:
    count = iter(range(10**6))
    return lambda _: lines[next(count) % len(lines)]
