"""Folders that a user names, refused at once and not when a run wants to write to them; and files written whole."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from graph.settings import Settings
from memory.disk import replacing, telling_full
from memory.errors import BadInput


def prepare_home(settings: Settings) -> Path:
    """Make the folder of runs, archive and caches. Raises BadInput where nothing can be written there, and DiskFull."""
    remedy = "choose another with --home or WARPSMITH_HOME"
    try:
        root = settings.root
        with telling_full(root):
            root.mkdir(parents=True, exist_ok=True)
            _try_writing(root)
    except OSError as error:
        raise BadInput(f"home {str(settings.home)!r} cannot be used: {_reason(error)}; {remedy}") from error
    except RuntimeError as error:
        # pathlib's word for an unknown user's home, and for links that lead in a circle.
        reason = str(error).rstrip(".")
        raise BadInput(f"home {str(settings.home)!r} cannot be used: {reason}; {remedy}") from error
    return root


def require_writable(folder: Path, remedy: str = "choose another with --out") -> None:
    """Refuse a folder for results that could not be made or written to, without making it.

    Raises: BadInput, and DiskFull where that is why.
    """
    absolute = folder.absolute()
    existing = next(path for path in (absolute, *absolute.parents) if os.path.lexists(path))
    try:
        with telling_full(folder):
            _try_writing(existing)
    except OSError as error:
        raise BadInput(f"cannot write to {str(folder)!r}: {_reason(error)}; {remedy}") from error


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a kill, or the power, leaves the old one or the new. Raises OSError, and DiskFull."""
    with telling_full(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as draft, draft.open("x", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _try_writing(folder: Path) -> None:
    # The mode bits do not tell of read-only and special file systems.
    with tempfile.TemporaryDirectory(prefix=".warpsmith-", dir=folder):
        pass


def _reason(error: OSError) -> str:
    # Of the names that were tried, the first that the user knows.
    path = Path(str(error.filename))
    known = path.parent if path.name.startswith(".warpsmith-") else path
    if isinstance(error, FileExistsError | NotADirectoryError):
        return f"{str(known)!r} is not a folder"
    return f"nothing can be written to {str(known)!r} ({error.strerror})"
