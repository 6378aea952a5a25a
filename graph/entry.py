"""What the `warpsmith` command imports first: next to nothing.

Spawned workers import the program's main module again, and need none of what the command line does. An interrupt while
the command line is being imported, which takes seconds, ends as quietly as a later one.
"""

from __future__ import annotations

import sys

EXIT_INTERRUPTED = 130
"""128 + SIGINT, as shells say it."""


def main() -> None:
    """Entry of the `warpsmith` command; see graph.cli.main."""
    try:
        from graph.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("warpsmith: interrupted\n")
        sys.exit(EXIT_INTERRUPTED)
    run()
