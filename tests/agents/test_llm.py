"""The client against a real socket: answers, faults of every kind, retries, limits; each ends in time and in words."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from agents.calls import Message, ModelFailed, ModelRequest
from agents.endpoint import Casting, Endpoint, ModelChoice, Role
from agents.llm import LanguageModels
from agents.transport import MAX_REPLY_BYTES
from tests.agents.model_server import (
    Asked,
    BreakOff,
    Drip,
    ModelServer,
    Raw,
    Refuse,
    Reply,
    Say,
    Script,
    Stall,
    in_turn,
    serving,
)

CASTING = Casting((ModelChoice("m", 1.0),))
ASK = ModelRequest("m", (Message("system", "be brief"), Message("user", "hello")), None, None, 500)


def endpoint(url: str) -> Endpoint:
    return Endpoint(
        casting=dict.fromkeys(Role, CASTING), api_key="sk-test-1", base_url=url, timeout_s=1.0, retries=2,
        retry_after_cap_s=5.0,
    )  # fmt: skip


def again() -> bool:
    """However many requests are lost, there is room for another."""
    return True


@contextmanager
def models(script: Script, **changes: object) -> Iterator[tuple[LanguageModels, ModelServer, list[float]]]:
    """A client, its server, and the pauses that it took, which take no time."""
    pauses: list[float] = []
    with (
        serving(script) as server,
        closing(
            LanguageModels(replace(endpoint(server.url), **changes), sleep=pauses.append)  # type: ignore[arg-type]
        ) as client,
    ):
        yield client, server, pauses


def test_an_answer_comes_with_its_tokens_and_the_request_with_its_settings() -> None:
    with models(in_turn(Say("hi", 11, 7))) as (client, server, _):
        request = replace(ASK, temperature=0.5, effort="low")
        said = client.complete(request, deadline_s=10, lost=again)
    assert (said.text, said.tokens_in, said.tokens_out, said.cut_off) == ("hi", 11, 7, False)
    assert said.latency_s > 0
    asked = server.asked[0]
    assert [turn["role"] for turn in asked.body["messages"]] == ["system", "user"]
    assert (asked.body["temperature"], asked.body["reasoning_effort"]) == (0.5, "low")
    assert asked.body["max_completion_tokens"] == 500
    assert asked.headers["authorization"] == "Bearer sk-test-1"


def test_settings_that_are_not_set_are_not_sent() -> None:
    with models(in_turn(Say("hi"))) as (client, server, _):
        client.complete(ASK, deadline_s=10, lost=again)
    assert not {"temperature", "reasoning_effort", "response_format"} & set(server.asked[0].body)


def test_an_answer_that_broke_off_at_its_limit_says_so() -> None:
    with models(in_turn(Say("half", finish="length"))) as (client, _, _):
        assert client.complete(ASK, deadline_s=10, lost=again).cut_off


def test_an_endpoint_that_does_not_count_leaves_the_tokens_open() -> None:
    with models(in_turn(Say("hi", usage=False))) as (client, _, _):
        said = client.complete(ASK, deadline_s=10, lost=again)
    assert (said.tokens_in, said.tokens_out) == (None, None)


@pytest.mark.parametrize(
    "fault",
    [
        Refuse(429),
        Refuse(500),
        Refuse(503),
        BreakOff(),
        Stall(3.0),
        Drip(0.1),
        Raw(b"<html>proxy</html>", "text/html"),
        Raw(b"{}"),
        Raw(b'{"choices": []}'),
        Raw(b'{"error": {"message": "no"}}'),
        Raw(b"not json"),
    ],
    ids=str,
)
def test_a_fault_that_may_pass_is_asked_again_and_then_answered(fault: Reply) -> None:
    with models(in_turn(fault, Say("hi"))) as (client, server, pauses):
        assert client.complete(ASK, deadline_s=20, lost=again).text == "hi"
    assert len(server.asked) == 2
    assert len(pauses) == 1 and 0 < pauses[0] <= 1.0


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Refuse(500, "on fire"), "500: on fire"),
        (Stall(3.0), "no answer within 1 s"),
        (Raw(b"{}"), "is no completion"),
        (BreakOff(), "cannot be reached"),
        (Drip(0.1), "no answer within 1 s"),
    ],
    ids=str,
)
def test_a_fault_that_stays_ends_after_the_retries_in_words(fault: Reply, words: str) -> None:
    with models(in_turn(fault)) as (client, server, _), pytest.raises(ModelFailed, match=words) as caught:
        client.complete(ASK, deadline_s=20, lost=again)
    assert len(server.asked) == 3
    assert "after 3 attempts" in str(caught.value)
    assert not caught.value.hopeless


def test_nobody_at_the_address_is_said_with_the_address() -> None:
    with serving(in_turn(Say("hi"))) as server:
        url = server.url
    with (
        closing(LanguageModels(endpoint(url), sleep=lambda _: None)) as client,
        pytest.raises(ModelFailed, match="cannot be reached") as caught,
    ):
        client.complete(ASK, deadline_s=10, lost=lambda: pytest.fail("nothing was sent"))
    assert url in str(caught.value)


@pytest.mark.parametrize(
    ("code", "words"), [(401, "OPENAI_API_KEY"), (403, "OPENAI_API_KEY"), (404, "WARPSMITH_MODELS")]
)
def test_a_refusal_that_no_retry_cures_says_what_to_check(code: int, words: str) -> None:
    with models(in_turn(Refuse(code, "no"))) as (client, server, _), pytest.raises(ModelFailed) as caught:
        client.complete(ASK, deadline_s=10, lost=again)
    assert len(server.asked) == 1
    assert caught.value.hopeless and words in str(caught.value)
    assert "sk-test-1" not in str(caught.value)


def test_a_pause_that_the_server_asks_for_is_taken() -> None:
    with models(in_turn(Refuse(429, headers={"Retry-After": "3"}), Say("hi"))) as (client, _, pauses):
        client.complete(ASK, deadline_s=20, lost=again)
    assert pauses == [3.0]


def test_a_pause_beyond_the_cap_is_not_taken() -> None:
    with (
        models(in_turn(Refuse(429, headers={"Retry-After": "120"}))) as (client, server, pauses),
        pytest.raises(ModelFailed, match="asks for a pause of 120 s and at most 5 s"),
    ):
        client.complete(ASK, deadline_s=600, lost=again)
    assert (len(server.asked), pauses) == (1, [])


def test_no_pause_is_taken_beyond_the_deadline() -> None:
    with (
        models(in_turn(Refuse(429, headers={"Retry-After": "4"}))) as (client, _, pauses),
        pytest.raises(ModelFailed, match="no time is left"),
    ):
        client.complete(ASK, deadline_s=2, lost=again)
    assert pauses == []


HUGE = Raw(b" " * (MAX_REPLY_BYTES + 1))
REFUSED = (Refuse(429), Refuse(500), Refuse(503))
LOST = (
    Refuse(408), Refuse(502), Refuse(504), BreakOff(), Stall(3.0), Drip(0.1), Raw(b"<html>"), Raw(b"{}"), HUGE,
)  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "lost"),
    [(fault, 0) for fault in REFUSED] + [(fault, 1) for fault in LOST],
    ids=lambda v: str(v)[:40],
)
def test_a_request_that_may_have_been_answered_without_us_is_reported_and_a_refused_one_is_not(
    fault: Reply, lost: int
) -> None:
    reports: list[int] = []

    def report() -> bool:
        reports.append(len(server.asked))
        return True

    with models(in_turn(fault, Say("hi"))) as (client, server, _):
        assert client.complete(ASK, deadline_s=20, lost=report).text == "hi"
    assert reports == [1] * lost  # before the second request goes out


def test_what_was_lost_is_not_asked_again_where_the_caps_leave_no_room() -> None:
    with (
        models(in_turn(BreakOff())) as (client, server, pauses),
        pytest.raises(ModelFailed, match="the caps leave no room to ask again") as caught,
    ):
        client.complete(ASK, deadline_s=20, lost=lambda: False)
    assert len(server.asked) == 1 and pauses == [] and not caught.value.hopeless


def test_a_slow_drip_ends_at_the_timeout_and_not_at_the_last_byte() -> None:
    with models(in_turn(Drip(0.2)), retries=0) as (client, _, _):
        began = time.monotonic()
        with pytest.raises(ModelFailed):
            client.complete(ASK, deadline_s=20, lost=again)
    assert time.monotonic() - began < 5


def test_an_endpoint_without_structured_output_is_asked_in_words_from_then_on() -> None:
    def script(asked: object) -> Reply:
        body = getattr(asked, "body", {})
        return Refuse(400, "unknown response_format") if "response_format" in body else Say("{}")

    request = replace(ASK, schema='{"type": "object"}')
    with models(script) as (client, server, pauses):
        assert client.complete(request, deadline_s=10, lost=again).text == "{}"
        assert client.complete(request, deadline_s=10, lost=again).text == "{}"
    assert ["response_format" in asked.body for asked in server.asked] == [True, False, False]
    assert pauses == [0.0]


def test_a_named_server_is_told_the_limit_in_both_ways_and_one_that_refuses_that_in_one() -> None:
    def script(asked: Asked) -> Reply:
        if "max_tokens" in asked.body:
            return Refuse(
                400, "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported"
            )
        return Say("{}")

    with models(in_turn(Say("hi"))) as (client, server, _):
        client.complete(ASK, deadline_s=10, lost=again)
    assert (server.asked[0].body["max_tokens"], server.asked[0].body["max_completion_tokens"]) == (500, 500)
    request = replace(ASK, schema='{"type": "object"}')
    with models(script) as (client, server, pauses):
        for _ in range(2):
            assert client.complete(request, deadline_s=10, lost=again).text == "{}"
    assert ["max_tokens" in asked.body for asked in server.asked] == [True, False, False]
    assert all("response_format" in asked.body for asked in server.asked) and pauses == [0.0]


def test_requests_are_spread_over_the_minute_where_a_rate_is_set() -> None:
    with models(in_turn(Say("hi")), requests_per_minute=300.0) as (client, server, _):
        began = time.monotonic()
        threads = [
            threading.Thread(target=client.complete, args=(ASK,), kwargs={"deadline_s": 30, "lost": again})
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(server.asked) == 4
    assert time.monotonic() - began > 0.55  # one at once, then one every 0.2 s


def test_no_more_requests_are_under_way_than_allowed() -> None:
    under_way, most, lock = [0], [0], threading.Lock()

    def script(asked: object) -> Reply:  # noqa: ARG001
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        time.sleep(0.1)
        with lock:
            under_way[0] -= 1
        return Say("hi")

    with models(script, parallel=2) as (client, _, _):
        threads = [
            threading.Thread(target=client.complete, args=(ASK,), kwargs={"deadline_s": 30, "lost": again})
            for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert most[0] == 2


def test_nothing_is_traced_unless_the_operator_asks_for_it() -> None:
    before = os.environ.get("LANGSMITH_TRACING")
    os.environ["LANGSMITH_TRACING"] = "true"
    os.environ["LANGSMITH_ENDPOINT"] = "http://127.0.0.1:9"
    try:
        with models(in_turn(Say("hi"))) as (client, _, _):
            began = time.monotonic()
            assert client.complete(ASK, deadline_s=10, lost=again).text == "hi"
            assert time.monotonic() - began < 5
    finally:
        del os.environ["LANGSMITH_ENDPOINT"]
        if before is None:
            del os.environ["LANGSMITH_TRACING"]
        else:
            os.environ["LANGSMITH_TRACING"] = before


def test_the_key_is_not_in_an_endpoints_repr() -> None:
    assert "sk-test-1" not in repr(endpoint("http://x"))
