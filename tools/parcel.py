"""Trials on their way to another machine: as one object each, and on the shelf where they arrive.

Here: reading a trial's files whole, naming them by their content, writing them elsewhere. Not here: how the objects
travel (tools.ray_parcels). A case travels with its trials' folders named by content, and whoever receives it says
where those lie.
Invariants: a trial appears on a shelf whole or not at all; one that is held stays; what nobody holds goes, the longest
unused first, once the shelf is full.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from memory.errors import StoreError
from tools.case import Case
from tools.owned_folder import own_folder
from tools.trial import MANIFEST, Manifest, Trial

SHELF_BYTES = 4 << 30
"""What a shelf keeps of trials that nobody holds: hundreds of ordinary ones."""

Files = Mapping[str, NDArray[np.uint8]]
"""Contents by path within the trial's folder, `/` between its parts."""


@dataclass(frozen=True)
class Parcel:
    """A trial's files."""

    digest: str
    files: Files


def pack(trial: Trial) -> Parcel:
    """Read a trial's files. Raises: StoreError where they are damaged."""
    try:
        manifest = Manifest.model_validate_json((trial.directory / MANIFEST).read_bytes())
        names = [MANIFEST]
        for folder in ("inputs", "state", "expected", "eager"):
            names += [f"{folder}/{member}.npy" for member in getattr(manifest, folder)]
        files = {name: np.fromfile(trial.directory / name, dtype=np.uint8) for name in names}
    except (OSError, ValidationError) as error:
        raise StoreError(
            f"trial in {trial.directory} cannot be sent: {error}; delete it and run again"
        ) from error
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\n{content.size}\n".encode())
        digest.update(content.data)
    return Parcel(digest.hexdigest(), files)


def trials_of(case: Case) -> tuple[Trial, ...]:
    """Every trial whose files judging the case may read, each once."""
    return tuple(dict.fromkeys((*case.trials, *(drawn.base for drawn in case.drawn))))


def relocated(case: Case, where: Callable[[Path], Path]) -> Case:
    """The same case with every trial's folder replaced by `where` of it."""

    def move(trial: Trial) -> Trial:
        return replace(trial, directory=where(trial.directory))

    drawn = tuple(replace(one, base=move(one.base)) for one in case.drawn)
    return replace(case, trials=tuple(move(trial) for trial in case.trials), drawn=drawn)


class Shelf:
    """Trials on this machine's disk, in a folder of their own under `parent`. Close it to remove them."""

    def __init__(self, parent: Path, limit_bytes: int = SHELF_BYTES) -> None:
        """Raises: OSError where nothing can be written there."""
        self.folder, self._lock_fd = own_folder(parent, "trials")
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._bytes: OrderedDict[str, int] = OrderedDict()
        self._holders: Counter[str] = Counter()

    def place(self, digest: str) -> Path:
        """The folder of a trial while it is held."""
        return self.folder / digest

    @contextmanager
    def holding(self, wanted: Mapping[str, Callable[[], Files]]) -> Iterator[None]:
        """Trials by digest, each with what fetches its files where the shelf lacks them: there while inside."""
        with self._lock:
            for digest, fetch in wanted.items():
                if digest not in self._bytes:
                    self._bytes[digest] = self._write(digest, fetch())
                self._bytes.move_to_end(digest)
            self._holders.update(wanted.keys())
            self._trim()
        try:
            yield
        finally:
            with self._lock:
                self._holders.subtract(wanted.keys())

    def close(self) -> None:
        """Remove every trial."""
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock_fd)

    def _write(self, digest: str, files: Files) -> int:
        partial = Path(tempfile.mkdtemp(prefix="partial-", dir=self.folder))
        for name, content in files.items():
            path = partial.joinpath(*PurePosixPath(name).parts)
            path.parent.mkdir(exist_ok=True)
            content.tofile(path)
        partial.rename(self.place(digest))
        return sum(content.size for content in files.values())

    def _trim(self) -> None:
        spare = sum(self._bytes.values()) - self._limit_bytes
        for digest in [d for d in self._bytes if not self._holders[d]]:
            if spare <= 0:
                return
            spare -= self._bytes.pop(digest)
            shutil.rmtree(self.place(digest))
