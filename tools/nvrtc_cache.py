"""Compile results on disk, shared by any number of processes.

One file per key, written to a temporary name and renamed, so a reader sees a whole entry or none. Each entry carries
a digest of its content and its own key: a truncated, flipped or misplaced file is deleted and counts as a miss.
Rejections by the compiler are kept as well; timeouts and crashes are not, they may be the machine's.
Covers: corruption, concurrent writers, size. Does not cover: someone with write access who forges entries.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from memory.errors import BadInput
from tools.nvrtc_records import Compiled, CompileRejected, CompileRequest, Diagnostic, KernelResources
from tools.nvrtc_toolkit import Toolkit

SCHEMA_VERSION = 1
"""Raise it whenever composing, parsing or the records change: old entries are then never read."""

_MAGIC = b"warpsmith-nvrtc\n"
_DIGEST_BYTES = 32
_PRUNE_TO = 0.8
_STALE_TEMPORARY_S = 3600.0
_log = logging.getLogger(__name__)


def cache_key(request: CompileRequest, toolkit: Toolkit) -> str:
    """Digest of everything that shapes the result: the whole request, NVRTC's version, the headers, our schema."""
    fields = [SCHEMA_VERSION, toolkit.version, toolkit.headers.fingerprint, dataclasses.asdict(request)]
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


class CompileCache:
    """A bounded directory of compile results; a full or failing disk costs time, never a result."""

    def __init__(self, root: Path, *, max_bytes: int = 1 << 30) -> None:
        """Raises: BadInput if `root` cannot be created."""
        self.root = root / f"nvrtc-v{SCHEMA_VERSION}"
        self._max_bytes = max_bytes
        self._unpruned_bytes: int | None = None
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(
                f"cannot create the compile cache {str(root)!r}: {error}; name another folder"
            ) from error

    def load(self, key: str) -> Compiled | CompileRejected | None:
        """The stored result, or None. A damaged entry is deleted. Marks the entry as recently used."""
        path = self._path(key)
        try:
            content = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        try:
            return _decode(content, key)
        except ValueError as error:
            _log.warning("compile cache entry %s is damaged (%s); compiling again", path, error)
            path.unlink(missing_ok=True)
            return None

    def store(self, key: str, result: Compiled | CompileRejected) -> None:
        """Write the entry whole or not at all, then prune if enough was written since the last time."""
        content = _encode(result, key)
        path = self._path(key)
        temporary = path.with_name(f"{uuid.uuid4().hex}.tmp")
        try:
            path.parent.mkdir(exist_ok=True)
            temporary.write_bytes(content)
            temporary.replace(path)
        except OSError as error:
            _log.warning("compile cache cannot store %s: %s", path, error)
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


def _encode(result: Compiled | CompileRejected, key: str) -> bytes:
    record = {k: v for k, v in dataclasses.asdict(result).items() if k not in ("cubin", "cached", "seconds")}
    header = json.dumps({"key": key, "kind": type(result).__name__, "record": record}).encode()
    cubin = result.cubin if isinstance(result, Compiled) else b""
    payload = len(header).to_bytes(8, "big") + header + cubin
    return _MAGIC + hashlib.sha256(payload).digest() + payload


def _decode(content: bytes, key: str) -> Compiled | CompileRejected:
    """Raises: ValueError for anything but an entry that `_encode` wrote under this key."""
    start = len(_MAGIC) + _DIGEST_BYTES
    payload = content[start:]
    if not content.startswith(_MAGIC) or hashlib.sha256(payload).digest() != content[len(_MAGIC) : start]:
        raise ValueError("digest mismatch")
    end = 8 + int.from_bytes(payload[:8], "big")
    entry = json.loads(payload[8:end])
    if entry["key"] != key:
        raise ValueError("filed under another key")
    record = entry["record"]
    if entry["kind"] == "CompileRejected":
        diagnostics = tuple(Diagnostic(**d) for d in record["diagnostics"])
        return CompileRejected(diagnostics, record["log"], record["reason"], cached=True)
    return Compiled(
        cubin=payload[end:],
        resources={name: KernelResources(**fields) for name, fields in record["resources"].items()},
        warnings=tuple(Diagnostic(**d) for d in record["warnings"]),
        log=record["log"],
        cached=True,
        seconds=0.0,
    )
