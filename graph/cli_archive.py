"""`warpsmith archive`: search and count the innovation archive, move it between machines, compute its vectors anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graph.build import archive_location, open_archive
from graph.cli_options import ArchiveUrl, Home, Json
from graph.printing import print_result
from graph.settings import resolve_settings
from graph.tables import archive_table, hits_table, import_table
from memory.archive import Archive
from memory.archive_entry import ArchiveFilter
from memory.disk import replacing
from memory.embedding import HashEmbedder
from memory.errors import BadInput
from memory.records import DType

archive_app = typer.Typer(help="Search the innovation archive.", no_args_is_help=True)


@archive_app.command(
    "search", epilog='Example:\n\n  warpsmith archive search "softmax over the last dimension, fp32"'
)
def archive_search(
    query: Annotated[str, typer.Argument(help="words or CUDA code")],
    limit: Annotated[int, typer.Option(min=1, max=100)] = 8,
    operation: Annotated[str | None, typer.Option(help="only with this operation, such as softmax")] = None,
    dtype: Annotated[DType | None, typer.Option(help="only of this dtype")] = None,
    arch: Annotated[str | None, typer.Option(help="only of this architecture")] = None,
    archive_url: ArchiveUrl = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Find verified winners by likeness."""
    settings = resolve_settings(home=home, archive_url=archive_url)
    where = ArchiveFilter(operations=(operation,) if operation else (), dtype=dtype, arch=arch)
    with open_archive(settings) as archive:
        hits = archive.search(query, limit=limit, where=where)
    print_result(hits_table(hits), hits, as_json=as_json)


@archive_app.command("stats")
def archive_stats(archive_url: ArchiveUrl = None, home: Home = None, as_json: Json = False) -> None:
    """Count what the archive holds."""
    settings = resolve_settings(home=home, archive_url=archive_url)
    with open_archive(settings) as archive:
        stats = archive.stats()
    print_result(archive_table(stats), stats, as_json=as_json)


@archive_app.command("export")
def archive_export(
    file: Annotated[Path, typer.Argument(help="the file to write, one innovation a line")],
    archive_url: ArchiveUrl = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Write every innovation, sources included, into one portable file of JSON lines."""
    settings = resolve_settings(home=home, archive_url=archive_url)
    count = 0
    try:
        with open_archive(settings) as archive, replacing(file) as draft, draft.open("w") as out:
            for line in archive.written_lines():
                out.write(f"{line}\n")
                count += 1
    except OSError as error:
        raise BadInput(f"cannot write {str(file)!r}: {error.strerror}") from error
    print_result(
        f"{count} innovation{'s' * (count != 1)} written to {file}",
        {"written": count, "file": str(file)},
        as_json=as_json,
    )


@archive_app.command("import")
def archive_import(
    file: Annotated[Path, typer.Argument(help="a file that `warpsmith archive export` wrote")],
    archive_url: ArchiveUrl = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Take in another archive's file. A record that is refused is named by its line, and the rest goes in.

    What is imported is marked: its figures are the other machine's. Exit code 1 where a record was refused.
    """
    settings = resolve_settings(home=home, archive_url=archive_url)
    try:
        with file.open(encoding="utf-8", errors="replace") as lines, open_archive(settings) as archive:
            report = archive.import_lines(lines)
    except OSError as error:
        raise BadInput(f"cannot read {str(file)!r}: {error.strerror}") from error
    print_result(import_table(report), report, as_json=as_json)
    for refused in report.refused:
        typer.echo(f"line {refused.line}: {refused.why}", err=True)
    if report.refused:
        raise typer.Exit(1)


@archive_app.command("reembed")
def archive_reembed(archive_url: ArchiveUrl = None, home: Home = None, as_json: Json = False) -> None:
    """Compute every vector anew where another embedder made them; killed midway, it leaves the archive whole."""
    settings = resolve_settings(home=home, archive_url=archive_url)
    with Archive.open(archive_location(settings), HashEmbedder(), reembed=True) as archive:
        count = archive.stats().total
    text = f"{count} innovation{'s' * (count != 1)} embedded with {HashEmbedder().name}"
    print_result(text, {"embedded": count, "embedder": HashEmbedder().name}, as_json=as_json)
