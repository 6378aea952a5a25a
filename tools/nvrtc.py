"""CUDA C++ to cubin with NVRTC, on a machine with or without a GPU.

    CompileRequest -> NvrtcCompiler.compile -> Compiled | CompileRejected

Here: the order of the steps (refuse file access, look in the cache, compile in a child, read the log). A source that
does not compile, hangs or crashes the compiler is a CompileRejected; what raises is ours or the machine's fault.
Lint is not here (`tools/lint.py`): what this module refuses by itself is only what could read files.
"""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

from tools.nvrtc_cache import CompileCache, cache_key
from tools.nvrtc_child import CompileJob, RawCompile
from tools.nvrtc_diagnostics import clean_log, excerpt, line_of_kernel, parse_log
from tools.nvrtc_records import Compiled, CompileRejected, CompileRequest, Diagnostic, KernelResources
from tools.nvrtc_resources import parse_resources
from tools.nvrtc_source import MAX_SOURCE_CHARS, compose, forbidden_directives
from tools.nvrtc_toolkit import Toolkit, find_toolkit
from tools.nvrtc_worker import CompileDied, CompileWorker

__all__ = [
    "CompileRejected",
    "CompileRequest",
    "Compiled",
    "Diagnostic",
    "KernelResources",
    "NvrtcCompiler",
]

_LOG_CHARS = 20_000


class NvrtcCompiler:
    """Compiles in one warm child process, behind an on-disk cache. Close it, or use it in a `with`."""

    def __init__(
        self,
        cache_dir: Path | None,
        *,
        timeout_s: float = 30.0,
        max_cache_bytes: int = 1 << 30,
        toolkit: Toolkit | None = None,
    ) -> None:
        """`cache_dir` None compiles every time. `toolkit` None looks for one.

        Raises: ToolMissing without NVRTC or its headers; BadInput if the cache folder cannot be made.
        """
        self._toolkit = toolkit or find_toolkit()
        self._timeout_s = timeout_s
        self._cache = CompileCache(cache_dir, max_bytes=max_cache_bytes) if cache_dir else None
        self._worker = CompileWorker(cache_dir / "scratch" if cache_dir else None)

    def version(self) -> tuple[int, int]:
        """NVRTC's major and minor version."""
        return self._toolkit.version

    def supported_archs(self) -> tuple[str, ...]:
        """Every architecture this NVRTC can make a cubin for, such as `sm_80` and `sm_90a`."""
        return self._toolkit.archs

    def compile(
        self, request: CompileRequest, *, timeout_s: float | None = None
    ) -> Compiled | CompileRejected:
        """Compile one request within `timeout_s` (default: the compiler's own).

        Raises: BadInput for an architecture NVRTC does not know or a malformed define; WorkerLost or ToolMissing
        if no compile process can be started.
        """
        started = time.perf_counter()
        self._toolkit.check_arch(request.arch)
        refused = _refusal(request.source)
        if refused:
            return refused
        composed = compose(request.source, request.defines)
        key = cache_key(request, self._toolkit) if self._cache else ""
        stored = self._cache.load(key) if self._cache else None
        if stored:
            return dataclasses.replace(stored, seconds=time.perf_counter() - started)
        job = CompileJob(
            plain=composed.plain,
            prefix=composed.prefix,
            precompiled=composed.precompiled,
            arch=request.arch,
            include_dirs=self._toolkit.headers.dirs,
            fast_math=request.fast_math,
            fmad=request.fmad,
            max_registers=request.max_registers,
        )
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        result = _judge(self._worker.compile(job, limit_s), request, self._toolkit.headers.dirs)
        result = dataclasses.replace(result, seconds=time.perf_counter() - started)
        if self._cache and not (isinstance(result, CompileRejected) and result.reason != "source"):
            self._cache.store(key, result)
        return result

    def close(self) -> None:
        """End the child process; a later compile starts another."""
        self._worker.close()

    def __enter__(self) -> NvrtcCompiler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _refusal(source: str) -> CompileRejected | None:
    """A rejection for text that must not reach NVRTC because it could open or probe files."""
    if len(source) > MAX_SOURCE_CHARS:
        message = f"the source has {len(source)} characters, more than the {MAX_SOURCE_CHARS} allowed"
        return CompileRejected((Diagnostic("error", None, message),), "")
    if "\0" in source:
        return CompileRejected((Diagnostic("error", None, "the source contains a NUL character"),), "")
    found = tuple(
        Diagnostic("error", line, f"refused before compiling: {why}", excerpt(source, line))
        for line, why in forbidden_directives(source)
    )
    return CompileRejected(found, "") if found else None


def _judge(
    raw: RawCompile | CompileDied, request: CompileRequest, header_dirs: tuple[str, ...]
) -> Compiled | CompileRejected:
    if isinstance(raw, CompileDied):
        advice = (
            "less template recursion, constexpr work or unrolling"
            if raw.reason == "timeout"
            else "other source"
        )
        diagnostic = Diagnostic("error", None, f"compilation gave up: {raw.detail}; it needs {advice}")
        return CompileRejected((diagnostic,), raw.detail, raw.reason)
    diagnostics = parse_log(raw.log, request.source, header_dirs)
    log = clean_log(raw.log, header_dirs)[:_LOG_CHARS]
    if raw.cubin is None:
        if not any(d.severity == "error" for d in diagnostics):
            diagnostics = (Diagnostic("error", None, f"NVRTC failed: {log[:500]}"), *diagnostics)
        return CompileRejected(diagnostics, log)
    resources = parse_resources(raw.log, raw.cubin)
    missing = tuple(
        _missing_entry(e, request.source, tuple(resources)) for e in request.entries if e not in resources
    )
    if missing:
        return CompileRejected((*missing, *diagnostics), log)
    return Compiled(raw.cubin, resources, diagnostics, log, cached=False, seconds=0.0)


def _missing_entry(entry: str, source: str, found: tuple[str, ...]) -> Diagnostic:
    line = line_of_kernel(source, entry)
    message = (
        f"the plan launches {entry!r}, but the cubin has only {', '.join(found) or 'no kernels'}: "
        f'define it as `extern "C" __global__ void {entry}(...)`'
    )
    return Diagnostic("error", line, message, excerpt(source, line) if line else "")
