"""Conversations: one file of JSON lines each under `<home>/chats/`, which survive a reload, a restart and a kill.

Here: what was said by both sides, and where the conversation stands. Not here: what is answered (graph.chat).
Invariants: a line is on the disk when the call that keeps it returns; lines are only ever added, each in one write, so
that two processes may write to one conversation. A line that a kill cut off is left out on reading.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from graph.chat_intents import Optimize
from graph.chat_parts import ChatPart
from graph.chat_source import file_of, segments
from graph.folders import write_whole
from memory.errors import BadInput, StoreError
from memory.records import Record

Clock = Callable[[], datetime]

_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_SHOWN = 10


class Said(Record):
    """A person's message."""

    kind: Literal["said"] = "said"
    at: str
    """ISO 8601, UTC."""
    text: str


class Answered(Record):
    """A part of an answer."""

    kind: Literal["answered"] = "answered"
    at: str
    """ISO 8601, UTC."""
    part: ChatPart


class Pending(Record):
    """A question that the next message answers."""

    about: Literal["module", "details", "new_run"]
    """Which module; its class or arguments; whether to start another run with a hint."""
    request: Optimize | None = None
    """What is known already, for `module` and `details`."""
    run: str | None = None
    hint: str | None = None


class Standing(Record):
    """Where the conversation stands; the last one counts."""

    kind: Literal["standing"] = "standing"
    run: str | None = None
    """The run that is talked about."""
    pending: Pending | None = None
    last: Optimize | None = None
    """The last request that was carried out, for 'again'."""


Line = Annotated[Said | Answered | Standing, Field(discriminator="kind")]
_LINE: TypeAdapter[Said | Answered | Standing] = TypeAdapter(Line)


@dataclass(frozen=True)
class ConversationHead:
    """One conversation in a list of them."""

    id: str
    changed: str
    """ISO 8601, UTC."""
    first: str
    """The beginning of the first message; empty where nothing was said."""
    run: str | None


class Conversation:
    """One conversation. Objects hold no file open and may be made anew at any time."""

    def __init__(self, folder: Path, conversation_id: str, now: Clock = lambda: datetime.now(UTC)) -> None:
        self.id = conversation_id
        self._folder = folder
        self._path = folder / f"{conversation_id}.jsonl"
        self._now = now

    def lines(self) -> list[Said | Answered | Standing]:
        """Everything, in order; what a kill cut off is left out. Raises StoreError where the file cannot be read."""
        try:
            content = self._path.read_bytes()
        except OSError as error:
            raise StoreError(f"conversation {self.id!r} cannot be read: {error}") from error
        return [line for raw in content.split(b"\n") if (line := _parsed(raw)) is not None]

    def messages(self) -> Iterator[Said | Answered]:
        """What both sides said, in order."""
        return (line for line in self.lines() if not isinstance(line, Standing))

    def standing(self) -> Standing:
        """Where the conversation stands."""
        return next((line for line in reversed(self.lines()) if isinstance(line, Standing)), Standing())

    def say(self, text: str) -> None:
        """Keep a person's message."""
        self._append(Said(at=self._at(), text=text))

    def answer(self, part: ChatPart) -> None:
        """Keep a part of an answer."""
        self._append(Answered(at=self._at(), part=part))

    def stand(self, standing: Standing) -> None:
        """Keep where the conversation stands, if that has changed."""
        if self.standing() != standing:
            self._append(standing)

    def keep_code(self, code: str, slug: str) -> Path:
        """Keep pasted code as a file of this conversation; the same code gets the same file. Returns its path.

        Raises StoreError where it cannot be written.
        """
        folder = self._folder / self.id
        name = re.sub(r"[^a-z0-9]+", "_", slug.lower()).strip("_")[:40] or "module"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(1, 10_000):
                path = folder / (f"{name}.py" if number == 1 else f"{name}_{number}.py")
                if path.exists():
                    if path.read_text(encoding="utf-8", errors="replace") == code:
                        return path
                    continue
                write_whole(path, code)
                return path
        except OSError as error:
            raise StoreError(f"pasted code cannot be kept under {str(folder)!r}: {error}") from error
        raise StoreError(f"{str(folder)!r} is full of modules named {name}; begin a new conversation")

    def _append(self, line: Said | Answered | Standing) -> None:
        # Begins with a line's end too: the line before may have been cut off.
        text = f"\n{line.model_dump_json()}\n".encode()
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                written = os.write(descriptor, text)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StoreError(f"conversation {self.id!r} cannot be kept: {error}") from error
        if written < len(text):
            raise StoreError(f"conversation {self.id!r} cannot be kept: no room on the disk")

    def _at(self) -> str:
        return self._now().isoformat(timespec="seconds")


def new_conversation(home: Path, now: Clock = lambda: datetime.now(UTC)) -> Conversation:
    """Begin a conversation, with an id that sorts by time. Raises StoreError where nothing can be written."""
    folder = home / "chats"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        while True:
            conversation_id = f"{now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
            try:
                (folder / f"{conversation_id}.jsonl").touch(0o600, exist_ok=False)
            except FileExistsError:
                continue
            return Conversation(folder, conversation_id, now)
    except OSError as error:
        raise StoreError(f"no conversation can be kept under {str(folder)!r}: {error}") from error


def find_conversation(home: Path, prefix: str, now: Clock = lambda: datetime.now(UTC)) -> Conversation:
    """The conversation whose id is or begins with `prefix`. Raises BadInput where none or several do."""
    if not _ID.fullmatch(prefix.strip("-")):
        raise BadInput(f"{prefix!r} is no conversation's id; `warpsmith chat --list` lists them")
    if _path(home, prefix).exists():
        return Conversation(home / "chats", prefix, now)
    known = [head.id for head in list_conversations(home)]
    found = [known_id for known_id in known if known_id.startswith(prefix)]
    if not found:
        raise BadInput(
            f"no conversation has an id that begins with {prefix!r}; `warpsmith chat --list` lists them"
        )
    if len(found) > 1:
        raise BadInput(
            f"{prefix!r} fits several conversations: {', '.join(found[:_SHOWN])}; give more of the id"
        )
    return Conversation(home / "chats", found[0], now)


def list_conversations(home: Path, *, limit: int | None = None) -> list[ConversationHead]:
    """All conversations, or so many, the last changed first."""
    folder = home / "chats"
    paths = [path for path in folder.glob("*.jsonl") if _ID.fullmatch(path.stem)] if folder.is_dir() else []
    newest = sorted(paths, key=lambda path: (path.stat().st_mtime, path.stem), reverse=True)
    return [_head(folder, path) for path in newest[:limit]]


def _beginning(text: str) -> str:
    """A message's words without its code, and the name of the file that it brought."""
    words = [segment for is_code, segment in segments(text) if not is_code]
    return " ".join(f"{' '.join(words) or text} {file_of(text)}".split())[:80]


def _path(home: Path, conversation_id: str) -> Path:
    return home / "chats" / f"{conversation_id}.jsonl"


def _head(folder: Path, path: Path) -> ConversationHead:
    conversation = Conversation(folder, path.stem)
    said = [line.text for line in conversation.messages() if isinstance(line, Said)]
    changed = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat()
    first = _beginning(said[0]) if said else ""
    return ConversationHead(path.stem, changed, first, conversation.standing().run)


def _parsed(raw: bytes) -> Said | Answered | Standing | None:
    if not raw.strip():
        return None
    try:
        return _LINE.validate_json(raw)
    except ValidationError:
        return None
