"""Which files of a folder are a benchmark's problems, in what order, and which of them were asked for.

Invariant: no file is run to find out; a file that cannot be parsed is kept, so that it is reported as failed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from memory.errors import BadInput

_SHOWN_NAMES = 10


@dataclass(frozen=True)
class BenchProblem:
    """A file of the folder that is, or was meant to be, a problem."""

    name: str
    """Path under the folder, without `.py`."""
    path: Path


def find_problems(folder: Path, *, only: Sequence[str] = (), limit: int | None = None) -> list[BenchProblem]:
    """The folder's problems in natural order (2 before 10).

    A file is a problem if it defines a class Model or cannot be parsed; names that begin with `_` or `.` are not.
    Raises: BadInput where nothing is left to do.
    """
    if not folder.is_dir():
        raise BadInput(f"{folder} is not a folder; name one with files in the KernelBench form")
    found = sorted(_problems(folder), key=lambda problem: _natural(problem.name))
    if not found:
        raise BadInput(
            f"no file under {folder} defines a class Model with get_inputs() and get_init_inputs()"
        )
    chosen = [p for p in found if not only or any(_fits(p.name, pattern) for pattern in only)]
    if not chosen:
        shown = ", ".join(p.name for p in found[:_SHOWN_NAMES])
        raise BadInput(f"no problem under {folder} fits {', '.join(map(repr, only))}; there are: {shown}, …")
    if limit is not None and limit < 1:
        raise BadInput(f"a limit of {limit} problems leaves nothing to do; give 1 or more")
    return chosen[:limit]


def _problems(folder: Path) -> Iterator[BenchProblem]:
    for path in folder.rglob("*.py"):
        place = path.relative_to(folder)
        if not any(part.startswith(("_", ".")) for part in place.parts) and _is_problem(path):
            yield BenchProblem(place.with_suffix("").as_posix(), path)


def _is_problem(path: Path) -> bool:
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return True
    return any(isinstance(node, ast.ClassDef) and node.name == "Model" for node in tree.body)


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", name)]


def _fits(name: str, pattern: str) -> bool:
    return pattern in name or fnmatch(name, pattern) or fnmatch(name.rpartition("/")[2], pattern)
