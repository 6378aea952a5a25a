"""Compiles ahead of the device: candidates that wait for it go through NVRTC on the other cores meanwhile.

Here: a handful of compile processes that fill the cache on disk which the device's worker reads. Not here: verdicts:
a program that does not compile is refused by the worker, from the same cache.
"""

from __future__ import annotations

import queue
from pathlib import Path

from memory.records import Problem, Program
from tools.devices.build import DeviceSpec, gpu_of, nvrtc_cache
from tools.devices.compiling import compile_request
from tools.nvrtc import NvrtcCompiler
from tools.program import validate


class Precompiler:
    """Up to `width` compiles at once, each in a child process of its own, started when first needed."""

    def __init__(self, spec: DeviceSpec, cache_dir: Path, width: int) -> None:
        self._spec = spec
        self._cache_dir = cache_dir
        self._free: queue.SimpleQueue[NvrtcCompiler | None] = queue.SimpleQueue()
        self._all: list[NvrtcCompiler] = []
        for _ in range(width):
            self._free.put(None)

    def compile(self, program: Program, problem: Problem) -> None:
        """Put the program's cubin, or its rejection, into the cache. Blocks until a compiler is free and done.

        Raises: ToolMissing without NVRTC; WorkerLost if no compile process can be started.
        """
        gpu = gpu_of(self._spec)
        plan, complaints = validate(program, problem, gpu)
        if plan is None or complaints or not plan.entries:
            return
        compiler = self._free.get()
        try:
            compiler = compiler or self._start()
            compiler.compile(compile_request(plan, gpu))
        finally:
            self._free.put(compiler)

    def close(self) -> None:
        """End every compile process."""
        for compiler in self._all:
            compiler.close()

    def _start(self) -> NvrtcCompiler:
        compiler = NvrtcCompiler(nvrtc_cache(self._cache_dir))
        self._all.append(compiler)
        return compiler
