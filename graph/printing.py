"""Results on stdout: a table for people, or one JSON document for programs."""

from __future__ import annotations

import typer
from rich.console import Console

from graph.display import to_json


def print_result(table: object, record: object, *, as_json: bool) -> None:
    """Print the one or the other."""
    if as_json:
        typer.echo(to_json(record))
    else:
        # Paths stay in one piece, however narrow the terminal.
        Console().print(table, crop=False)
