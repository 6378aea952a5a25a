"""`warpsmith chat`: the conversation in a terminal, in a pipe, or one message at a time.

Not here: answering (graph.chat). Invariant: leaving, however it happens, stops no run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text as RichText

from graph.build import open_reader
from graph.chat import ChatEngine
from graph.chat_history import (
    Conversation,
    ConversationHead,
    find_conversation,
    list_conversations,
    new_conversation,
)
from graph.chat_parts import ChatPart, Code, Failure, ProgressLine, Question, Table
from graph.chat_source import FIRST_LINE
from graph.cli_options import DeviceOption, Gpu, Home, Models
from graph.display import to_json
from graph.entry import EXIT_INTERRUPTED
from graph.folders import prepare_home
from graph.settings import resolve_settings

_LEAVE = frozenset({"exit", "quit", "bye", "leave", ":q"})
_FENCE = "```"
_FAILED = 2
_EPILOG = (
    "Examples:\n\n  warpsmith chat\n\n"
    '  warpsmith chat -m "optimize examples/layernorm_gelu.py for an H100, stay within 1e-5, ten minutes" --wait\n\n'
    "  warpsmith chat -m status\n\n"
    '  (echo "optimize this, inputs f32[64,512]"; cat block.py) | warpsmith chat --new --wait\n\n'
    "  warpsmith chat --list"
)


def register(app: typer.Typer) -> None:
    """Add the command to an app."""
    app.command(epilog=_EPILOG)(chat)


def chat(
    message: Annotated[
        str | None, typer.Option("--message", "-m", help="say this, print the answer, and end")
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option(
            "--conversation", "-c", help="id of a conversation, or its beginning [default: the last one]"
        ),
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="begin a new conversation")] = False,
    listed: Annotated[bool, typer.Option("--list", help="list the conversations, and end")] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="follow the run to its end, with its progress")
    ] = False,
    device: DeviceOption = None,
    gpu: Gpu = None,
    models: Models = None,
    home: Home = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="print each part of an answer as one JSON object a line")
    ] = False,
) -> None:
    """Optimize by conversation: name a module, ask how it goes, why something won or failed, stop it, export it.

    Works by rules; where models are configured, they put free words into the forms that the rules read. Paste code
    between lines of ``` or end it with a line of one dot. Searches go on in processes of their own: leaving the chat
    does not stop them. A pipe is read to its end; blank lines outside of code separate its messages. Exit code 2 where
    an answer was an error, unless the chat was interactive.
    """
    settings = resolve_settings(home=home, device=device, gpu=gpu, models=models)
    root = prepare_home(settings)
    show = _Printer(as_json)
    if listed:
        show.conversations(list_conversations(root))
        return
    talk = _conversation(root, conversation, new=new)
    try:
        with open_reader(settings) as reader:
            engine = ChatEngine(talk, settings, reader=reader)
            if message is not None:
                show.answer(engine.say(message))
            elif sys.stdin.isatty():
                _converse(engine, show, wait=wait)
                typer.echo(_how_to_return(talk, home), err=True)
                return
            else:
                for text in split_messages(sys.stdin.read().splitlines()):
                    show.answer(engine.say(text))
            if wait and not show.failed and talk.standing().run is not None:
                show.answer(engine.follow())
    except KeyboardInterrupt:
        typer.echo(f"\n{_how_to_return(talk, home)}", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if show.failed:
        raise typer.Exit(_FAILED)


def split_messages(lines: Iterable[str]) -> Iterator[str]:
    """Messages of a pipe: separated by blank lines outside of fences, or by a line of one dot.

    Code without fences goes on over its own blank lines: only a line of one dot or the end ends its message.
    """
    message: list[str] = []
    fenced = unfenced = False
    for line in lines:
        if line.lstrip().startswith(_FENCE):
            fenced = not fenced
        unfenced = unfenced or (not fenced and FIRST_LINE.match(line) is not None)
        ended = line.strip() == "." or (not line.strip() and not unfenced)
        if not fenced and ended:
            if any(text.strip() for text in message):
                yield "\n".join(message)
            message, unfenced = [], False
        else:
            message.append(line)
    if any(text.strip() for text in message):
        yield "\n".join(message)


class _Printer:
    """Draws parts on stdout."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._console = Console(highlight=False, soft_wrap=False)
        self.failed = False
        """True after an answer that was an error."""

    def answer(self, parts: Iterable[ChatPart]) -> None:
        for part in parts:
            self.failed = self.failed or isinstance(part, Failure)
            if self._as_json:
                print(part.model_dump_json(), flush=True)  # noqa: T201
            else:
                self._draw(part)

    def conversations(self, heads: list[ConversationHead]) -> None:
        if self._as_json:
            typer.echo(to_json(heads))
            return
        if not heads:
            typer.echo("No conversations yet. Begin one: warpsmith chat")
            return
        table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
        for name in ("conversation", "changed", "run", "began with"):
            table.add_column(name, overflow="fold")
        for head in heads:
            changed = f"{datetime.fromisoformat(head.changed):%Y-%m-%d %H:%M}"
            table.add_row(head.id, changed, head.run or "", RichText(head.first))
        self._console.print(table)

    def _draw(self, part: ChatPart) -> None:
        if isinstance(part, Table):
            self._table(part)
        elif isinstance(part, Code):
            self._console.print(RichText(part.text), style="dim", soft_wrap=True)
        else:
            kinds = {Failure: "red", Question: "bold", ProgressLine: "dim"}
            style = next((style for kind, style in kinds.items() if isinstance(part, kind)), "")
            self._console.print(RichText(part.text), style=style)

    def _table(self, part: Table) -> None:
        table = RichTable(
            title=part.title,
            title_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            show_header=bool(part.columns),
        )
        for column in part.columns or ("", ""):
            table.add_column(column, overflow="fold")
        for row in part.rows:
            table.add_row(*(RichText(cell) for cell in row))
        self._console.print(table)


def _conversation(root: Path, wanted: str | None, *, new: bool) -> Conversation:
    """The conversation named, a new one, or the last. Raises BadInput for an unknown id."""
    if wanted is not None and not new:
        return find_conversation(root, wanted)
    known = [] if new else list_conversations(root)
    return find_conversation(root, known[0].id) if known else new_conversation(root)


def _converse(engine: ChatEngine, show: _Printer, *, wait: bool) -> None:
    talk = engine.conversation
    typer.echo(
        f"Conversation {talk.id}. Name a module, or say 'help'. Paste code between lines of {_FENCE}, or end it with a"
        " line of one dot; 'exit' or Ctrl-D leaves.",
        err=True,
    )
    try:
        while (text := _read_message()) is not None:
            if text.strip().lower().rstrip(".!") in _LEAVE:
                break
            if not text.strip():
                continue
            before = talk.standing().run
            show.answer(engine.say(text))
            if wait and talk.standing().run != before:
                _follow(engine, show)
    except KeyboardInterrupt:
        typer.echo("", err=True)


def _follow(engine: ChatEngine, show: _Printer) -> None:
    try:
        show.answer(engine.follow())
    except KeyboardInterrupt:
        typer.echo("\nno longer followed; the run goes on: say 'status' or 'stop'", err=True)


def _read_message() -> str | None:
    """One message from the terminal; None at its end. Code goes on to the end of its fence, or to a line of one dot."""
    lines: list[str] = []
    fenced = unfenced = False
    while True:
        try:
            line = input("> " if not lines else "… ")
        except EOFError:
            if not lines:
                typer.echo("", err=True)
                return None
            return "\n".join(lines)
        if line.strip() == "." and not fenced:
            return "\n".join(lines)
        lines.append(line)
        if line.lstrip().startswith(_FENCE):
            fenced = not fenced
            if not fenced:
                return "\n".join(lines)
        unfenced = unfenced or FIRST_LINE.match(line) is not None or line.endswith(":")
        if not fenced and not unfenced:
            return "\n".join(lines)


def _how_to_return(talk: Conversation, home: Path | None) -> str:
    run, where = talk.standing().run, f" --home {home}" if home is not None else ""
    back = f"come back with `warpsmith chat -c {talk.id}{where}`"
    return f"{back}; runs go on without it, see `warpsmith show {run}{where}`" if run else back
