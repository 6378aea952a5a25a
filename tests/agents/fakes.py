"""An endpoint and a journal without sockets or files, for tests of everything that asks models."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from agents.allowance import Allowance, Caps
from agents.asking import Asker
from agents.calls import Call, Completion, Journal, ModelFailed, ModelRequest
from agents.endpoint import Casting, Endpoint, Role, parse_models
from agents.prices import Price, Prices

PRICES = Prices(date="2026-01-01", source="made up", models={"m": Price(input=1.0, output=10.0)})
"""Only `m` has one."""

UNCAPPED = Caps()

LOST = ModelFailed("an answer that never reached us", hopeless=False)
"""A request that is asked again."""

Line = str | Completion | ModelFailed
Script = Callable[[ModelRequest], Line]


def said(
    text: str, tokens_in: int | None = 100, tokens_out: int | None = 20, *, cut_off: bool = False
) -> Completion:
    return Completion(text, tokens_in, tokens_out, cut_off, 0.5)


def in_turn(*lines: Line) -> Script:
    """One line after another; none after the last."""
    left = list(lines)
    return lambda request: left.pop(0)  # noqa: ARG005


class ScriptedModels:
    """Says what the script says; `requests` has everything it was asked."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._lock = threading.Lock()
        self.requests: list[ModelRequest] = []
        self.deadlines: list[float] = []

    def complete(self, request: ModelRequest, *, deadline_s: float, lost: Callable[[], bool]) -> Completion:
        """See agents.calls.Models."""
        with self._lock:
            self.deadlines.append(deadline_s)
        while True:
            with self._lock:
                self.requests.append(request)
                line = self._script(request)
            if line is not LOST:
                break
            if not lost():
                raise ModelFailed(f"{request.model}: no room to ask again", hopeless=False)
        if isinstance(line, ModelFailed):
            raise line
        return line if isinstance(line, Completion) else said(line)

    @property
    def asked(self) -> list[str]:
        """The model of every request."""
        return [request.model for request in self.requests]


class MemoryJournal:
    """Keeps calls in a list."""

    def __init__(self, seconds: float = 100.0) -> None:
        self.calls: list[Call] = []
        self.out: list[Call] = []
        """Requests of calls that were not kept yet."""
        self.by_key: dict[str, Call] = {}
        self.seconds = seconds

    def answered(self, key: str) -> Call | None:
        """See agents.calls.Journal."""
        return self.by_key.get(key)

    def sent(self, call: Call) -> None:
        """See agents.calls.Journal."""
        self.out.append(call)

    def keep(self, call: Call, *, answered: bool) -> None:
        """See agents.calls.Journal."""
        self.out = [sent for sent in self.out if sent.slip != call.slip]
        self.calls.append(call)
        if answered:
            assert call.key not in self.by_key, "paid for twice"
            self.by_key[call.key] = call

    def seconds_left(self) -> float:
        """See agents.calls.Journal."""
        return self.seconds


@dataclass
class Desk:
    """An asker with all that it uses, to look at afterwards."""

    script: Script
    ensemble: str = "m"
    caps: Caps = UNCAPPED
    seed: str = "7"
    max_output_tokens: int = 1000
    casting: dict[Role, Casting] = field(default_factory=dict)
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    prices: Prices = PRICES
    book: Journal | None = None
    """Where calls go in place of `journal`."""

    def __post_init__(self) -> None:
        general = Casting(parse_models(self.ensemble))
        endpoint = Endpoint(
            casting={role: self.casting.get(role, general) for role in Role},
            api_key="k",
            max_output_tokens=self.max_output_tokens,
        )
        self.models = ScriptedModels(self.script)
        self.asker = Asker(
            endpoint,
            self.models,
            self.book or self.journal,
            self.prices,
            Allowance(self.caps),
            seed=self.seed,
        )

    def resumed(self, script: Script) -> Desk:
        """A later process over the same journal."""
        return replace(self, script=script)

    @property
    def failures(self) -> Sequence[str | None]:
        """What was wrong with each call, in order."""
        return [call.failure for call in self.journal.calls]


def silent(request: ModelRequest) -> Line:
    """A script of a server that is down."""
    return ModelFailed(f"{request.model}: out of reach", hopeless=False)
