"""Results on stdout: a table for people, or one JSON document for programs."""

from __future__ import annotations

import typer
from rich.console import Console

from graph.display import to_json
from graph.session import Outcome
from graph.tables import summary_table
from memory.records import RunStatus

EXIT_NOT_IMPROVED = 3


def print_result(table: object, record: object, *, as_json: bool) -> None:
    """Print the one or the other."""
    if as_json:
        typer.echo(to_json(record))
    else:
        # Paths stay in one piece, however narrow the terminal.
        Console().print(table, crop=False)


def continue_with(run_id: str) -> str:
    """How to go on with a run."""
    return f"continue with `warpsmith resume {run_id}`"


def conclude(outcome: Outcome, *, as_json: bool) -> None:
    """Print how a run ended. Raises typer.Exit with EXIT_NOT_IMPROVED where it has no winner, or none yet."""
    summary = outcome.summary
    print_result(summary_table(summary), summary, as_json=as_json)
    if outcome.waits_for_review:
        typer.echo(
            f"{outcome.waits_for_review} waits for review: warpsmith resume {summary.run} --approve (or --reject),"
            f" or warpsmith rollback {summary.run} CANDIDATE",
            err=True,
        )
    if summary.status != RunStatus.IMPROVED.value:
        raise typer.Exit(EXIT_NOT_IMPROVED)
