"""Compile results on disk, shared by any number of processes.

Here: the key, and a result as bytes; the files are tools.entry_cache's. Rejections by the compiler are kept as well;
timeouts and crashes are not, they may be the machine's.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

from tools.entry_cache import EntryCache
from tools.nvrtc_records import Compiled, CompileRejected, CompileRequest, Diagnostic, KernelResources
from tools.nvrtc_toolkit import Toolkit

SCHEMA_VERSION = 2
"""Raise it whenever composing, parsing or the records change: old entries are then never read."""

_MAGIC = b"warpsmith-nvrtc\n"


def cache_key(request: CompileRequest, toolkit: Toolkit) -> str:
    """Digest of everything that shapes the result: the whole request, NVRTC's version, the headers, our schema."""
    fields = [SCHEMA_VERSION, toolkit.version, toolkit.headers.fingerprint, dataclasses.asdict(request)]
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


class CompileCache:
    """A bounded directory of compile results."""

    def __init__(self, root: Path, *, max_bytes: int = 1 << 30) -> None:
        """Raises: BadInput if `root` cannot be created."""
        self._entries = EntryCache(root / f"nvrtc-v{SCHEMA_VERSION}", magic=_MAGIC, max_bytes=max_bytes)

    @property
    def root(self) -> Path:
        """Where the entries lie."""
        return self._entries.root

    def load(self, key: str) -> Compiled | CompileRejected | None:
        """The stored result, or None where there is none that is whole."""
        content = self._entries.load(key)
        return None if content is None else _decode(content)

    def store(self, key: str, result: Compiled | CompileRejected) -> None:
        """Keep a result."""
        self._entries.store(key, _encode(result))


def _encode(result: Compiled | CompileRejected) -> bytes:
    record = {k: v for k, v in dataclasses.asdict(result).items() if k not in ("cubin", "cached", "seconds")}
    header = json.dumps({"kind": type(result).__name__, "record": record}).encode()
    cubin = result.cubin if isinstance(result, Compiled) else b""
    return len(header).to_bytes(8, "big") + header + cubin


def _decode(content: bytes) -> Compiled | CompileRejected:
    end = 8 + int.from_bytes(content[:8], "big")
    entry = json.loads(content[8:end])
    record = entry["record"]
    if entry["kind"] == "CompileRejected":
        diagnostics = tuple(Diagnostic(**d) for d in record["diagnostics"])
        return CompileRejected(diagnostics, record["log"], record["reason"], cached=True)
    return Compiled(
        cubin=content[end:],
        resources={name: KernelResources(**fields) for name, fields in record["resources"].items()},
        warnings=tuple(Diagnostic(**d) for d in record["warnings"]),
        log=record["log"],
        cached=True,
        seconds=0.0,
    )
