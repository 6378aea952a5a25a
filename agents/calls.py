"""One call of a language model: what is asked, what comes back, and the two ports that it goes through.

Here: the records and protocols that the asking (agents.asking), the endpoint (agents.llm) and the run's journal share.
Not here: when to ask, and what an answer decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from agents.endpoint import Role


@dataclass(frozen=True)
class Message:
    """One turn of a conversation."""

    role: str
    """system, user or assistant."""
    text: str


@dataclass(frozen=True)
class ModelRequest:
    """Everything that decides an answer."""

    model: str
    messages: tuple[Message, ...]
    temperature: float | None
    effort: str | None
    max_output_tokens: int
    schema: str | None = None
    """JSON schema of the answer as text, for endpoints with structured output; None for free text."""


@dataclass(frozen=True)
class Completion:
    """An endpoint's answer."""

    text: str
    tokens_in: int | None
    """None where the endpoint does not say."""
    tokens_out: int | None
    cut_off: bool
    """The answer ended at a limit rather than where the model meant it to."""
    latency_s: float
    """Of the request that was answered."""


class ModelFailed(Exception):
    """No answer could be had; the message says why and what to do. Callers go on without it."""

    def __init__(self, message: str, *, hopeless: bool) -> None:
        """hopeless: every further request of this kind would fail alike (a wrong key, an unknown model)."""
        super().__init__(message)
        self.hopeless = hopeless


class Models(Protocol):
    """An endpoint: agents.llm has the real one."""

    def complete(self, request: ModelRequest, *, deadline_s: float, lost: Callable[[], bool]) -> Completion:
        """The model's answer, within about `deadline_s`, pauses and retries included. Raises ModelFailed.

        lost: called for every request that may have been answered, and charged, without an answer that reached us;
        False where there must be no further one.
        """
        ...


@dataclass(frozen=True)
class Call:
    """One request with what became of it, for the journal."""

    key: str
    """Identity of the request; None of its like is sent twice."""
    role: Role
    model: str
    generation: int
    candidate_id: str | None
    move: str | None
    prompt: str
    prompt_hash: str
    reply: str
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    latency_s: float
    decision: str
    failure: str | None
    slip: str = field(default="", compare=False)
    """Which asking this is: a repeat has the same key and another slip. Empty for a call found again."""


class Journal(Protocol):
    """Where calls are kept: the run's store."""

    def answered(self, key: str) -> Call | None:
        """The call of this key that was answered, or None."""
        ...

    def sent(self, call: Call) -> None:
        """Note, committed on return, that a request goes out; the call says the most that it may use.

        A journal that outlives the process counts it so where the process dies before it keeps the call.
        """
        ...

    def keep(self, call: Call, *, answered: bool) -> None:
        """Keep a call, committed on return; one that was answered is found by its key. Closes what was sent for it."""
        ...

    def seconds_left(self) -> float:
        """Of the run's wall time."""
        ...
