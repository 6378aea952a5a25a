"""What the chat answers with: small records that a terminal, a page or a program can show.

Not here: how they are drawn (graph.cli_chat).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from memory.records import Record


class Text(Record):
    """One or more sentences."""

    kind: Literal["text"] = "text"
    text: str


class Question(Record):
    """The one thing that is missing; the next message answers it."""

    kind: Literal["question"] = "question"
    text: str


class ProgressLine(Record):
    """What is being done or has just happened, in one line."""

    kind: Literal["progress"] = "progress"
    text: str


class Table(Record):
    """Rows under column names; without names, pairs of a label and its value."""

    kind: Literal["table"] = "table"
    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...]


class Code(Record):
    """Text to be shown as it is."""

    kind: Literal["code"] = "code"
    text: str


class Failure(Record):
    """What could not be done, why, and what to do, in one sentence."""

    kind: Literal["error"] = "error"
    text: str


ChatPart = Annotated[Text | Question | ProgressLine | Table | Code | Failure, Field(discriminator="kind")]
