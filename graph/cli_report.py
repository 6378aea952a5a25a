"""`warpsmith report`: a run's report as a file. Not here: what it says (graph.report)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graph.build import open_store
from graph.cli_options import Home
from graph.folders import require_writable, write_whole
from graph.report import report_html, report_markdown
from graph.report_facts import gather
from graph.session import find_run
from graph.settings import resolve_settings
from memory.errors import BadInput

_FORMS = {".md": report_markdown, ".html": report_html}


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command(
        epilog="Examples:\n\n  warpsmith report layernorm_gelu-2026 --out report.html\n\n"
        "  warpsmith report layernorm_gelu-2026 > report.md"
    )(report)


def report(
    run: Annotated[str, typer.Argument(help="run id or its beginning")],
    out: Annotated[
        Path | None,
        typer.Option(help="file to write: .md or .html, the latter with plots [default: Markdown, printed]"),
    ] = None,
    home: Home = None,
) -> None:
    """Report on a run: what was found, on what, how fast, what was verified and what was not, and how to use it."""
    settings = resolve_settings(home=home)
    if out is not None and out.suffix not in _FORMS:
        raise BadInput(f"{str(out)!r} has neither of the endings that a report can have: .md or .html")
    if out is not None:
        require_writable(out.parent, "name another file with --out")
    with open_store(settings) as store:
        facts = gather(find_run(run, store), store, settings)
    if out is None:
        typer.echo(report_markdown(facts), nl=False)
        return
    try:
        write_whole(out, _FORMS[out.suffix](facts))
    except OSError as error:
        raise BadInput(
            f"cannot write {str(out)!r}: {error.strerror}; name another file with --out"
        ) from error
    typer.echo(f"report written to {out}")
