"""Runs a benchmark as a process that a test may kill: `python -m tests.graph.benching FOLDER OUT HOME [ONLY...]`.

Prints one JSON line for every problem that has its entry.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from graph.bench import BenchListener, ProblemFinished, as_lines, run_bench, write_report
from graph.build import open_store
from graph.progress import Progress
from graph.settings import resolve_settings


def listener() -> BenchListener:
    """Entries as JSON on stdout; everything as text on stderr."""
    lines = as_lines(lambda event: print(event, file=sys.stderr))  # noqa: T201

    def listen(event: Progress | object) -> None:
        lines(event)  # type: ignore[arg-type]
        if isinstance(event, ProblemFinished):
            said = {"name": event.entry.name, "reused": event.reused, "position": event.position}
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()

    return listen


def main() -> None:
    """One small benchmark."""
    folder, out, home = (Path(argument) for argument in sys.argv[1:4])
    settings = resolve_settings(
        home=home, export_dir=home / "kernels", population=2, generations=1, soak_trials=5, workers=1
    )
    with open_store(settings) as store:
        results = run_bench(folder, out, settings, store, listener(), only=sys.argv[4:])
    write_report(results, out)


if __name__ == "__main__":
    main()
