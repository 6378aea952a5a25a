"""Reads free chat with a language model: into the plain forms that the rules read, and nothing else.

Here: the question and its answer. Not here: the words (prompts/interpreter.md), the forms (graph.chat_intents), and
which of them a model's answer may lead to (graph.chat_reader).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pydantic import Field

from agents.answers import parse_object, schema_of
from agents.asking import Asker, Question
from agents.endpoint import Role
from agents.prompting import fill, material
from memory.records import Record

BUDGETS = {"before": 1500, "message": 6000}
"""Tokens at most."""


class FormAnswer(Record):
    """An interpreter's answer."""

    form: str = Field(max_length=2000)
    """One plain form; empty where none fits."""


class ModelInterpreter:
    """Puts a message into a plain form."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    def rephrase(self, message: str, before: Sequence[str]) -> str | None:
        """The message as a plain form: empty where none fits, None where no answer could be had.

        before: the person's last messages, oldest first.
        """
        values = {
            "before": material("before", "\n".join(before)) if before else "Nothing.",
            "message": material("message", message),
        }
        slot = f"chat/{hashlib.sha256(message.encode()).hexdigest()[:16]}"
        question = Question(fill(Role.INTERPRETER, values, BUDGETS), slot, 0, schema=schema_of(FormAnswer))
        answered = self._asker.ask(
            question,
            lambda text: parse_object(text, FormAnswer),
            lambda answer: answer.form or "no form fits",
        )
        return answered[0].form.strip() if answered else None
