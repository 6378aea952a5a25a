"""`warpsmith pin`, `kill`, `release` and `rollback`: a person's word on candidates."""

from __future__ import annotations

from typing import Annotated

import typer

from graph.build import open_store
from graph.cli_options import Home, Json, Quiet
from graph.display import Display
from graph.interrupts import interruptible
from graph.oversight import mark
from graph.printing import conclude, continue_with
from graph.session import find_run, roll_back
from graph.settings import resolve_settings
from memory.events import Verdict

RunName = Annotated[str, typer.Argument(metavar="RUN", help="run id or its beginning")]
CandidateName = Annotated[
    str,
    typer.Argument(metavar="CANDIDATE", help="candidate, such as 002-003; `warpsmith show RUN` lists them"),
]
Note = Annotated[str, typer.Option(help="why, for the record")]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command(epilog="Example:\n\n  warpsmith pin layernorm_gelu-2026 002-003")(pin)
    app.command(epilog='Example:\n\n  warpsmith kill layernorm_gelu-2026 002-003 --note "unreadable"')(kill)
    app.command(epilog="Example:\n\n  warpsmith release layernorm_gelu-2026 002-003")(release)
    app.command(
        epilog='Example:\n\n  warpsmith rollback layernorm_gelu-2026 001-000 --note "the later one needs 90 KiB"'
    )(rollback)


def pin(run: RunName, candidate: CandidateName, note: Note = "", home: Home = None) -> None:
    """Keep a candidate in a run's population, however it ranks; a run at work heeds it with its next generation."""
    _mark(run, candidate, Verdict.PINNED, note, home)


def kill(run: RunName, candidate: CandidateName, note: Note = "", home: Home = None) -> None:
    """Take a candidate out of a run: it neither breeds nor wins."""
    _mark(run, candidate, Verdict.KILLED, note, home)


def release(run: RunName, candidate: CandidateName, note: Note = "", home: Home = None) -> None:
    """Take back `pin` or `kill`."""
    _mark(run, candidate, Verdict.RELEASED, note, home)


def _mark(run: str, candidate: str, verdict: Verdict, note: str, home: Home) -> None:
    settings = resolve_settings(home=home)
    with open_store(settings) as store:
        typer.echo(mark(find_run(run, store), candidate, verdict, store, note=note))


def rollback(
    run: RunName,
    candidate: CandidateName,
    note: Note = "",
    home: Home = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Go back to an earlier winner: it is put through the soak and takes the winner's place.

    For a run whose winner waits for review and for one that improved. Where the earlier one fails its soak, the next
    best takes the place. Exit code as of `optimize`.
    """
    settings = resolve_settings(home=home)
    with open_store(settings) as store:
        found = find_run(run, store)
        with interruptible(continue_with(found.id)), Display(quiet=quiet or as_json) as display:
            outcome = roll_back(found, candidate, store, settings, display.tell, note=note)
    conclude(outcome, as_json=as_json)
