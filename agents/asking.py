"""Asks a model until its answer fits, pays once for every answer, and writes down what was asked and said.

Here: the order of things: the journal first, then the caps, then the endpoint, then the parse, then at most MISFITS
more turns that show the model what did not fit. Not here: the records of a call (agents.calls), transport
(agents.llm), forms of answers (agents.answers).
Invariants: an answered request is never sent again, by this process or one that resumes the run; every request is
noted before it goes out, with the most it may use; every call leaves an event; no answer is None, and callers fall back
to rules.
"""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Generic, TypeVar

from agents.allowance import Allowance, Bill, CapReached, Need, most_read
from agents.answers import Misfit
from agents.calls import Call, Completion, Journal, Message, ModelFailed, ModelRequest, Models
from agents.endpoint import Endpoint
from agents.prices import Prices
from agents.prompting import Prompt

T = TypeVar("T")

MISFITS = 2
"""Further turns after an answer that does not fit."""
MAX_REPLY_CHARS = 400_000
"""A longer reply is no answer; the store would keep every one of them."""
GIVEN_UP_AFTER = 3
"""Requests in a row without any answer, after which a run does not ask that model again."""
NO_ANSWER = "no answer; the rules go on without it"


@dataclass(frozen=True)
class Question:
    """What to ask whom, and which decision of the run it serves."""

    prompt: Prompt
    slot: str
    """Which decision: equal prompts of two slots are two requests, so that a run can draw twice."""
    generation: int
    candidate_id: str | None = None
    move: str | None = None
    """What a coder is to do; None for other roles."""
    model: str | None = None
    """None draws one from the role's ensemble."""
    schema: str | None = None


@dataclass(frozen=True)
class Answer:
    """Who gave a reply that fitted, and the conversation that it ended; for a further turn."""

    model: str
    turns: tuple[Message, ...]


@dataclass(frozen=True)
class _Heard(Generic[T]):
    """A call that was answered."""

    call: Call
    parsed: T | None
    """None where the answer does not fit: the call says why."""


class Asker:
    """The models of a run. Threads may share it."""

    def __init__(
        self,
        endpoint: Endpoint,
        models: Models,
        journal: Journal,
        prices: Prices,
        allowance: Allowance,
        *,
        seed: str = "",
    ) -> None:
        """seed: part of every request's identity and of every draw of a model."""
        self._endpoint = endpoint
        self._models = models
        self._journal = journal
        self._prices = prices
        self._allowance = allowance
        self._seed = seed
        self._silent: dict[str, int] = {}
        self._lock = threading.Lock()

    @property
    def exhausted(self) -> str:
        """Why no further call is let through; empty while calls are."""
        return self._allowance.exhausted

    def available(self, model: str) -> bool:
        """False once a model has failed so often, or so hopelessly, that the run goes on without it."""
        with self._lock:
            return self._silent.get(model, 0) < GIVEN_UP_AFTER

    def ask(
        self,
        question: Question,
        parse: Callable[[str], T],
        describe: Callable[[T], str],
        *,
        after: Answer | None = None,
        remark: str = "",
    ) -> tuple[T, Answer] | None:
        """The parsed answer, or None where none could be had; why not is in the journal.

        parse: raises Misfit for the model to read. describe: one sentence on the answer, for the overseer.
        after, remark: a further turn in an earlier conversation.
        """
        model = question.model or (after.model if after else self._chosen(question))
        if model is None:
            return None
        turns = after.turns if after else _opening(question.prompt)
        if remark:
            turns = (*turns, Message("user", remark))
        for turn in range(MISFITS + 1):
            heard = self._hear(question, model, turns, parse, describe, last=turn == MISFITS)
            if heard is None:
                return None
            spoken = (*turns, Message("assistant", heard.call.reply))
            if heard.parsed is not None:
                return heard.parsed, Answer(model, spoken)
            turns = (
                *spoken,
                Message("user", f"That does not fit: {heard.call.failure}\nAnswer again, whole."),
            )
        return None

    def _chosen(self, question: Question) -> str | None:
        """The model that has answered this before, or else the first drawn of those that still answer."""
        rng = Random(f"{self._seed}/{question.prompt.role}/{question.slot}")
        order = self._endpoint.casting[question.prompt.role].order(rng)
        turns = _opening(question.prompt)
        answered = (m for m in order if self._journal.answered(self._key(question, m, turns)) is not None)
        return next(answered, None) or next(filter(self.available, order), None)

    def _request(self, question: Question, model: str, turns: tuple[Message, ...]) -> ModelRequest:
        casting, limit = self._endpoint.casting[question.prompt.role], self._endpoint.max_output_tokens
        return ModelRequest(model, turns, casting.temperature, casting.effort, limit, question.schema)

    def _key(self, question: Question, model: str, turns: tuple[Message, ...]) -> str:
        parts = [asdict(self._request(question, model, turns)), self._seed, question.slot]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _hear(
        self,
        question: Question,
        model: str,
        turns: tuple[Message, ...],
        parse: Callable[[str], T],
        describe: Callable[[T], str],
        *,
        last: bool,
    ) -> _Heard[T] | None:
        """One request's answer, from the journal or the endpoint; None where there is none."""
        request, key = self._request(question, model, turns), self._key(question, model, turns)
        if (known := self._journal.answered(key)) is not None:
            return (
                _Heard(known, None) if known.failure is not None else _read(known, parse, describe, last=last)
            )
        if not self.available(model):
            return None
        blank = _unanswered(question, model, turns, key)
        price = self._prices.of(model)
        try:
            with self._allowance.call(Need(most_read(request), request.max_output_tokens, price)) as bill:
                completion = self._complete(request, bill, blank)
        except CapReached as reached:
            self._journal.keep(_failed(blank, str(reached)), answered=False)
            return None
        except ModelFailed as failed:
            self._heard_of(model, failed)
            self._journal.keep(_failed(_billed(blank, bill), str(failed)), answered=False)
            return None
        self._heard_of(model)
        # Half of a surrogate pair, which JSON can carry, is no text that could be kept.
        reply = completion.text.encode(errors="replace").decode()
        call = replace(_billed(blank, bill), reply=reply, latency_s=completion.latency_s)
        broke_off_at = (completion.tokens_out or bill.limit) if completion.cut_off else None
        heard = _read(call, parse, describe, last=last, broke_off_at=broke_off_at)
        self._journal.keep(heard.call, answered=True)
        return heard

    def _heard_of(self, model: str, failed: ModelFailed | None = None) -> None:
        """Count the model's silences in a row."""
        with self._lock:
            step = 0 if failed is None else GIVEN_UP_AFTER if failed.hopeless else 1
            self._silent[model] = self._silent.get(model, 0) + step if step else 0

    def _complete(self, request: ModelRequest, bill: Bill, blank: Call) -> Completion:
        """The endpoint's answer, put on the bill. Raises ModelFailed."""
        granted = replace(request, max_output_tokens=bill.limit)
        at_most = replace(
            blank, tokens_in=bill.need.tokens_in, tokens_out=bill.limit, cost_usd=bill.most_cost_usd
        )

        def lost() -> bool:
            if again := self._allowance.lost(bill):
                self._journal.sent(at_most)
            return again

        self._journal.sent(at_most)
        left_s = self._journal.seconds_left()
        said = self._models.complete(granted, deadline_s=left_s, lost=lost)
        bill.settle(said.tokens_in, said.tokens_out)
        if len(said.text) > MAX_REPLY_CHARS:
            raise ModelFailed(
                f"{request.model}: a reply of {len(said.text):,} characters; at most {MAX_REPLY_CHARS:,} are taken",
                hopeless=False,
            )
        return said


def _read(
    call: Call,
    parse: Callable[[str], T],
    describe: Callable[[T], str],
    *,
    last: bool,
    broke_off_at: int | None = None,
) -> _Heard[T]:
    """The call with what the answer decides, or with what is wrong with it."""
    try:
        parsed = parse(call.reply)
        return _Heard(replace(call, decision=describe(parsed)), parsed)
    except Misfit as misfit:
        why = str(misfit)
        if broke_off_at is not None:
            why = f"the answer broke off at {broke_off_at} tokens; be shorter. {why}"
        ending = "given up" if last else "asked again"
        return _Heard(replace(call, decision=f"an answer that does not fit; {ending}", failure=why), None)


def _unanswered(question: Question, model: str, turns: tuple[Message, ...], key: str) -> Call:
    return Call(
        key=key, role=question.prompt.role, model=model, generation=question.generation,
        candidate_id=question.candidate_id, move=question.move, prompt=_as_text(turns),
        prompt_hash=question.prompt.template_hash,
        reply="", tokens_in=None, tokens_out=None, cost_usd=None, latency_s=0.0, decision="", failure=None,
        slip=uuid.uuid4().hex,
    )  # fmt: skip


def _billed(call: Call, bill: Bill) -> Call:
    """The call with all that its requests used, those without an answer included."""
    return replace(call, tokens_in=bill.tokens_in, tokens_out=bill.tokens_out, cost_usd=bill.cost_usd)


def _failed(call: Call, why: str) -> Call:
    counted = (call.tokens_in or 0) + (call.tokens_out or 0)
    if counted:
        return replace(call, decision=NO_ANSWER, failure=f"{why}; counted as {counted:,} tokens")
    return replace(call, tokens_in=None, tokens_out=None, cost_usd=None, decision=NO_ANSWER, failure=why)


def _opening(prompt: Prompt) -> tuple[Message, ...]:
    return Message("system", prompt.system), Message("user", prompt.user)


def _as_text(turns: tuple[Message, ...]) -> str:
    """A conversation as an overseer reads it."""
    return "\n\n".join(f"[{turn.role}]\n{turn.text}" for turn in turns)
