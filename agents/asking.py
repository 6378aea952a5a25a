"""Asks a model until its answer fits, pays once for every answer, and writes down what was asked and said.

Here: the order of things: the journal first, then the caps, then the endpoint, then the parse, then at most MISFITS
more turns that show the model what did not fit. Not here: the records of a call (agents.calls), transport
(agents.llm), forms of answers (agents.answers).
Invariants: an answered request is never sent again, by this process or one that resumes the run; every call leaves an
event; no answer is None, and callers fall back to rules.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Generic, TypeVar

from agents.allowance import Allowance, CapReached
from agents.answers import Misfit
from agents.calls import Call, Completion, Journal, Message, ModelFailed, ModelRequest, Models
from agents.endpoint import Endpoint
from agents.prices import Prices
from agents.prompting import Prompt, tokens_of

T = TypeVar("T")

MISFITS = 2
"""Further turns after an answer that does not fit."""
GIVEN_UP_AFTER = 3
"""Requests in a row without any answer, after which a run does not ask that model again."""


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
        blank = Call(
            key=key, role=question.prompt.role, model=model, generation=question.generation,
            candidate_id=question.candidate_id, move=question.move, prompt=_as_text(turns),
            prompt_hash=question.prompt.template_hash,
            reply="", tokens_in=None, tokens_out=None, cost_usd=None, latency_s=0.0, decision="", failure=None,
        )  # fmt: skip
        try:
            completion, cost_usd = self._paid(request)
        except CapReached as reached:
            self._journal.keep(_failed(blank, str(reached)), answered=False)
            return None
        except ModelFailed as failed:
            with self._lock:
                step = GIVEN_UP_AFTER if failed.hopeless else 1
                self._silent[model] = self._silent.get(model, 0) + step
            self._journal.keep(_failed(blank, str(failed)), answered=False)
            return None
        with self._lock:
            self._silent[model] = 0
        call = replace(
            blank,
            reply=completion.text,
            tokens_in=completion.tokens_in,
            tokens_out=completion.tokens_out,
            cost_usd=cost_usd,
            latency_s=completion.latency_s,
        )
        heard = _read(call, parse, describe, last=last, cut_off=completion.cut_off)
        self._journal.keep(heard.call, answered=True)
        return heard

    def _paid(self, request: ModelRequest) -> tuple[Completion, float | None]:
        """Ask within the caps; the answer, its tokens counted, and what it cost. Raises CapReached and ModelFailed."""
        tokens_in = sum(tokens_of(turn.text) for turn in request.messages)
        worst = tokens_in + request.max_output_tokens
        price = self._prices.cost_usd(request.model, tokens_in, request.max_output_tokens)
        with self._allowance.call(worst, price) as bill:
            said = self._models.complete(request, deadline_s=self._journal.seconds_left())
            # An endpoint that does not count is counted for.
            read = _counted(said.tokens_in, tokens_in)
            written = _counted(said.tokens_out, tokens_of(said.text))
            bill.tokens = read + written
            cost_usd = self._prices.cost_usd(request.model, read, written)
            bill.cost_usd = cost_usd or 0.0
        # Half of a surrogate pair, which JSON can carry, is no text that could be kept.
        text = said.text.encode(errors="replace").decode()
        return replace(said, text=text, tokens_in=read, tokens_out=written), cost_usd


def _counted(count: int | None, estimate: int) -> int:
    return count if count is not None and count >= 0 else estimate


def _read(
    call: Call,
    parse: Callable[[str], T],
    describe: Callable[[T], str],
    *,
    last: bool,
    cut_off: bool = False,
) -> _Heard[T]:
    """The call with what the answer decides, or with what is wrong with it."""
    try:
        parsed = parse(call.reply)
        return _Heard(replace(call, decision=describe(parsed)), parsed)
    except Misfit as misfit:
        why = str(misfit)
        if cut_off:
            why = f"the answer broke off at {call.tokens_out} tokens; be shorter. {why}"
        ending = "given up" if last else "asked again"
        return _Heard(replace(call, decision=f"an answer that does not fit; {ending}", failure=why), None)


def _failed(call: Call, why: str) -> Call:
    return replace(call, decision="no answer; the rules go on without it", failure=why)


def _opening(prompt: Prompt) -> tuple[Message, ...]:
    return Message("system", prompt.system), Message("user", prompt.user)


def _as_text(turns: tuple[Message, ...]) -> str:
    """A conversation as an overseer reads it."""
    return "\n\n".join(f"[{turn.role}]\n{turn.text}" for turn in turns)
