"""Entries on disk by key, shared by any number of processes: what the caches have in common.

One file per key, written to a temporary name and renamed, so a reader sees a whole entry or none. Each entry carries
a digest of its content and its own key: a truncated, flipped or misplaced file is deleted and counts as a miss.
Covers: corruption, concurrent writers, size. Does not cover: someone with write access who forges entries.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from memory.errors import BadInput

_DIGEST_BYTES = 32
_PRUNE_TO = 0.8
_STALE_TEMPORARY_S = 3600.0
_log = logging.getLogger(__name__)


class EntryCache:
    """A bounded directory of byte strings; a full or failing disk costs time, never a result."""

    def __init__(self, root: Path, *, magic: bytes, max_bytes: int) -> None:
        """magic: what every file begins with. Raises: BadInput if `root` cannot be created."""
        self.root = root
        self._magic = magic
        self._max_bytes = max_bytes
        self._unpruned_bytes: int | None = None
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"cannot create the cache {str(root)!r}: {error}; name another folder") from error

    def load(self, key: str) -> bytes | None:
        """The stored content, or None. A damaged entry is deleted. Marks the entry as recently used."""
        path = self._path(key)
        try:
            content = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        start = len(self._magic) + _DIGEST_BYTES
        if content.startswith(self._magic) and content[len(self._magic) : start] == _digest(
            key, content[start:]
        ):
            return content[start:]
        _log.warning("cache entry %s is damaged; making it again", path)
        path.unlink(missing_ok=True)
        return None

    def store(self, key: str, content: bytes) -> None:
        """Write the entry whole or not at all, then prune if enough was written since the last time."""
        path = self._path(key)
        temporary = path.with_name(f"{uuid.uuid4().hex}.tmp")
        try:
            path.parent.mkdir(exist_ok=True)
            temporary.write_bytes(self._magic + _digest(key, content) + content)
            temporary.replace(path)
        except OSError as error:
            _log.warning("the cache cannot store %s: %s", path, error)
            temporary.unlink(missing_ok=True)
            return
        if self._unpruned_bytes is not None:
            self._unpruned_bytes += len(content)
        if self._unpruned_bytes is None or self._unpruned_bytes > self._max_bytes // 16:
            self.prune()

    def prune(self) -> int:
        """Delete the longest unused entries beyond the bound, down to 80 % of it; returns how many went."""
        entries, removed = [], 0
        for path, stat in self._files():
            if path.suffix == ".tmp":
                if time.time() - stat.st_mtime > _STALE_TEMPORARY_S:
                    path.unlink(missing_ok=True)
                continue
            entries.append((stat.st_mtime_ns, stat.st_size, path))
        total = sum(size for _, size, _ in entries)
        if total > self._max_bytes:
            for _, size, path in sorted(entries, key=lambda e: e[0]):
                if total <= self._max_bytes * _PRUNE_TO:
                    break
                path.unlink(missing_ok=True)
                total -= size
                removed += 1
        self._unpruned_bytes = 0
        return removed

    def _path(self, key: str) -> Path:
        return self.root / key[:2] / f"{key}.entry"

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for folder in self.root.iterdir():
            if len(folder.name) != 2 or not folder.is_dir():
                continue
            for path in folder.iterdir():
                try:
                    yield path, path.stat()
                except FileNotFoundError:  # another process pruned it
                    continue


def _digest(key: str, content: bytes) -> bytes:
    """Of the key too: an entry under another's name is not taken for it."""
    return hashlib.sha256(key.encode() + b"\n" + content).digest()
