"""Reads a model's answer: reasoning in prose, then fenced blocks, into records.

Here: parsing, pure. Not here: asking again (agents.asking). Invariant: what does not fit is refused with a complaint
that tells the model exactly what to change; nothing is repaired by guessing.
"""

from __future__ import annotations

import json
import re
from typing import TypeVar

from pydantic import Field, ValidationError

from agents.schemas import Reading
from memory.records import Program, Record

R = TypeVar("R", bound=Record)

_FENCE = re.compile(r"[ \t]*```+[ \t]*([A-Za-z0-9_+-]*)([^\n]*)")
"""A line that opens a block or, where nothing follows the backticks, closes one."""
_CUDA = frozenset(("cuda", "cu", "cpp", "c++", "c"))
_JSON = frozenset(("json",))
SHOWN_COMPLAINTS = 8
SHOWN_NAME = 60
"""Characters of a name that the model chose, in a complaint."""


class Misfit(Exception):
    """The answer does not have the form asked for; the message is for the model."""


class ProgramAnswer(Record):
    """A coder's answer."""

    program: Program
    idea: str = Field(min_length=1, max_length=400)
    techniques: tuple[str, ...] = Field(default=(), max_length=8)


class PlannedSlot(Record):
    """A planner's word on one slot."""

    slot: int = Field(ge=1)
    bottleneck: str
    idea: str = Field(min_length=10, max_length=400)
    parents: tuple[str, ...] = Field(default=(), max_length=3)
    """Candidate numbers such as `001-002`; empty leaves the ones that were suggested."""


class PlanAnswer(Record):
    """A planner's answer."""

    proposals: tuple[PlannedSlot, ...] = Field(min_length=1)


class ReadingAnswer(Record):
    """A profiler's answer."""

    bottleneck: str
    explanation: str = Field(min_length=1, max_length=600)
    advice: str = Field(min_length=1, max_length=600)

    def reading(self) -> Reading:
        """As the profiler's port gives it."""
        return Reading(self.bottleneck, self.explanation, self.advice, by_model=True)


class CritiqueAnswer(Record):
    """A critic's answer."""

    lessons: tuple[str, ...] = Field(max_length=6)
    suspicious: tuple[str, ...] = ()
    stop: bool = False
    reason: str = ""


def parse_program(text: str) -> ProgramAnswer:
    """One ```cuda block with the source and one ```json block with the rest. Raises Misfit."""
    blocks = _Blocks(text)
    source = blocks.only(_CUDA, "cuda")
    plan = _object(blocks.only(_JSON, "json"))
    if "source" in plan:
        raise Misfit('the json block has a "source"; leave it out, the cuda block is the source')
    labels = {name: value for name, value in plan.items() if name in ("idea", "techniques")}
    rest = {name: value for name, value in plan.items() if name not in labels}
    program = _validated(Program, {**rest, "source": source})
    return _validated(ProgramAnswer, {**labels, "program": program})


def parse_object(text: str, kind: type[R]) -> R:
    """One JSON object, in a ```json block or bare. Raises Misfit."""
    blocks = _Blocks(text)
    if not blocks.closed and text.lstrip().startswith("{"):
        return _validated(kind, _object(text))
    return _validated(kind, _object(blocks.only(_JSON | {""}, "json")))


def schema_of(kind: type[Record]) -> str:
    """JSON schema of an answer, for endpoints with structured output."""
    return json.dumps(kind.model_json_schema(), sort_keys=True)


class _Blocks:
    """The fenced blocks of an answer, read line by line: an answer may be long, and may be nothing but fences."""

    def __init__(self, text: str) -> None:
        self.closed: list[tuple[str, str]] = []
        """Language and body of each block that has an end."""
        self._unclosed: set[str] = set()
        self._empty = not text.strip()
        language: str | None = None
        body: list[str] = []
        for line in text.replace("\r\n", "\n").split("\n"):
            fence = _FENCE.match(line)
            if fence is None:
                body.append(line)
            elif language is not None and not fence[1] and not fence[2].strip():
                self.closed.append((language, "".join(f"{kept}\n" for kept in body)))
                language = None
            else:
                # A fence with a language inside of a block: the block before it was never closed.
                self._unclosed |= {language} if language is not None else set()
                language, body = fence[1].lower(), []
        self._unclosed |= {language} if language is not None else set()

    def only(self, languages: frozenset[str], shown: str) -> str:
        """The body of the one block in one of these languages. Raises Misfit where there is none, or more than one."""
        found = [body for language, body in self.closed if language in languages]
        if self._empty:
            raise Misfit("the answer is empty")
        unclosed = self._unclosed & languages
        if unclosed and not (found and unclosed == {""}):  # a stray fence after a whole block harms nothing
            raise Misfit(
                f"a ```{shown} block is opened and never closed; end it with ``` on a line of its own, and be shorter "
                "where there was no room for that"
            )
        if len(found) == 1:
            return found[0]
        if found:
            raise Misfit(f"the answer has {len(found)} ```{shown} blocks; give exactly one, complete")
        raise Misfit(f"the answer has no ```{shown} block; give exactly one, complete")


def _object(text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
        json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        line = text.split("\n")[error.lineno - 1]
        raise Misfit(
            f"the json is not valid: {error.msg} at line {error.lineno}, column {error.colno}: {line.strip()[:120]!r}"
        ) from error
    except RecursionError as error:
        raise Misfit("the json is nested too deeply") from error
    except UnicodeEncodeError as error:
        raise Misfit(
            r"the json has half of a surrogate pair (an escape such as \ud800); leave it out"
        ) from error
    except ValueError as error:
        raise Misfit("the json has a number of thousands of digits; give one that fits 64 bits") from error
    if not isinstance(found, dict):
        raise Misfit(f"the json is a {type(found).__name__}; give one object")
    return found


def _validated(kind: type[R], value: dict[str, object]) -> R:
    try:
        # Strings of JSON stand for tuples and enums, so the lax mode that reads JSON is the one wanted.
        return kind.model_validate(value)
    except ValidationError as error:
        lines = [
            f"- {'.'.join(str(part)[:SHOWN_NAME] for part in found['loc']) or 'the object'}: {found['msg']}"
            for found in error.errors()[:SHOWN_COMPLAINTS]
        ]
        more = error.error_count() - len(lines)
        tail = f"\n- and {more} more" if more > 0 else ""
        raise Misfit("the json does not fit:\n" + "\n".join(lines) + tail) from error
