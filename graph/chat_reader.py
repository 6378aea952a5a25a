"""Messages that the rules cannot read, read by a language model: into forms that the rules can.

Here: asking, and what a model's answer may lead to. Not here: the rules (graph.chat_intents), the model's question
(agents.interpreter). Invariant: a model's answer starts, tells or notes something; it never stops, resumes, approves,
rejects, exports or says yes, and it names no file that the person did not: for those their own words are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from agents.calls import Call
from graph.chat_intents import Explain, Help, Hint, Intent, ListRuns, Optimize, Status, WhyFailed, read_intent

ALLOWED = (Optimize, Status, Explain, WhyFailed, Hint, ListRuns, Help)
"""What a model may read out of a message."""


@dataclass(frozen=True)
class Reading:
    """What a model made of a message."""

    intent: Intent | None
    """None where it made nothing of it that a model may."""
    remark: str
    """For the person: how the message was read, by whom and at what price, or why it was not."""


class Reader(Protocol):
    """Reads a message that the rules cannot."""

    def __call__(self, message: str, before: Sequence[str]) -> Reading:
        """before: the person's last messages, oldest first."""
        ...


class Rephrase(Protocol):
    """A model's question: agents.interpreter has the real one."""

    def rephrase(self, message: str, before: Sequence[str]) -> str | None:
        """The message as a plain form: empty where none fits, None where no answer could be had."""
        ...


class CallLog:
    """The journal of calls outside of any run: remembers answers while it lives, and keeps nothing on disk."""

    def __init__(self, seconds: float) -> None:
        """seconds: what one message may take."""
        self._seconds = seconds
        self._answered: dict[str, Call] = {}
        self.calls: list[Call] = []
        """Every call, oldest first."""

    def answered(self, key: str) -> Call | None:
        """See agents.calls.Journal."""
        return self._answered.get(key)

    def sent(self, call: Call) -> None:
        """See agents.calls.Journal. What a chat spends counts while it lives."""

    def keep(self, call: Call, *, answered: bool) -> None:
        """See agents.calls.Journal."""
        self.calls.append(call)
        if answered:
            self._answered[call.key] = call

    def seconds_left(self) -> float:
        """See agents.calls.Journal."""
        return self._seconds


class ModelReader:
    """Reads with a model that is opened when it is first needed."""

    def __init__(self, opened: Callable[[], Rephrase], log: CallLog) -> None:
        """opened: the model, the same one each time; its calls are in the log."""
        self._opened = opened
        self._log = log

    def __call__(self, message: str, before: Sequence[str]) -> Reading:
        """See Reader."""
        already = len(self._log.calls)
        form = self._opened().rephrase(message, before)
        made = self._log.calls[already:]
        if form is None:
            why = f": {made[-1].failure}" if made and made[-1].failure else ""
            return Reading(None, f"No language model could be asked what that means{why}")
        intent = read_intent(form) if form else None
        named = isinstance(intent, Optimize) and intent.target.path
        if not isinstance(intent, ALLOWED) or (
            named and not any(named in said for said in (*before, message))
        ):
            return Reading(None, f"{_who(made)} could not put that into a form that I take from a model.")
        return Reading(intent, f"{_who(made)} reads that as: {form}")


def _who(made: Sequence[Call]) -> str:
    """The model, with what its calls took; "A language model" where the answer was known already."""
    if not made:
        return "A language model"
    tokens = sum((call.tokens_in or 0) + (call.tokens_out or 0) for call in made)
    costs = [call.cost_usd for call in made if call.cost_usd is not None]
    cost = f", ${sum(costs):.4f}" if len(costs) == len(made) else ""
    return f"{made[-1].model} ({tokens:,} tokens{cost})"
