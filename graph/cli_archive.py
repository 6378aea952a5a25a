"""`warpsmith archive`: search and count the innovation archive."""

from __future__ import annotations

from typing import Annotated

import typer

from graph.build import open_archive
from graph.cli_options import ArchiveUrl, Home, Json
from graph.printing import print_result
from graph.settings import resolve_settings
from graph.tables import archive_table, hits_table
from memory.archive_entry import ArchiveFilter
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
