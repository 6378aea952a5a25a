"""Work ahead of the device: candidates that wait for it are linted and go through NVRTC on the other cores meanwhile.

Here: a handful of processes that fill the caches on disk which the device's worker reads. Not here: verdicts: a program
that is refused is refused by the worker, from the same caches. Processes and not threads: the rules that read CUDA text
are Python, and the coordinator's own interpreter would make the device wait while it reads.
"""

from __future__ import annotations

import queue
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

from memory.errors import WarpsmithError
from memory.records import Program
from tools.binding import BindError, bind
from tools.case import Case
from tools.devices.build import DeviceSpec, gpu_of, nvrtc_cache
from tools.devices.compiling import compile_request
from tools.gpus import GpuSpec
from tools.lint_cache import LintCache
from tools.nvrtc import NvrtcCompiler
from tools.program import validate
from tools.worker_process import READY, Died, Overrun, WorkerFailure, WorkerProcess, questions, reply, settle


@dataclass(frozen=True)
class PrecompilerSpec:
    """What a process needs to work ahead."""

    gpu: GpuSpec
    cache_dir: Path


class Precompiler:
    """Up to `width` programs at once, each in a process of its own, started when first needed or warmed."""

    def __init__(self, spec: DeviceSpec, cache_dir: Path, width: int) -> None:
        """Raises: ToolMissing or BadInput without the GPU that `spec` names."""
        self._spec = PrecompilerSpec(gpu_of(spec), cache_dir)
        self._width = width
        self._free: queue.SimpleQueue[WorkerProcess | None] = queue.SimpleQueue()
        self._all: list[WorkerProcess] = []
        for _ in range(width):
            self._free.put(None)

    def warm(self) -> None:
        """Start every process now."""
        for process in [self._free.get() or self._start() for _ in range(self._width)]:
            self._free.put(process)

    def prepare(self, program: Program, case: Case) -> None:
        """Put the program's findings and cubins, or its rejection, into the caches. Blocks until a process is free and
        done. A program that it hangs on or dies of is left to the worker.

        Raises: ToolMissing without NVRTC; WorkerLost if no process can be started.
        """
        process = self._free.get()
        answer: object = None
        try:
            process = process or self._start()
            answer = process.ask(case, program, case.policy.deadline_s)
        except (Overrun, Died):
            pass
        finally:
            usable = process is not None and process.usable
            if process is not None and not usable:
                self._all.remove(process)
            self._free.put(process if usable else None)
        if isinstance(answer, WorkerFailure):
            raise answer.error(f"preparing program {program.content_hash()[:12]}")

    def close(self) -> None:
        """End every process."""
        for process in list(self._all):
            process.kill()

    def _start(self) -> WorkerProcess:
        process = WorkerProcess(serve, self._spec, forked=True)
        self._all.append(process)
        return process


def serve(connection: Connection, spec: PrecompilerSpec) -> None:
    """Entry of a process: prepare programs until the pipe closes."""
    settle()
    try:
        with NvrtcCompiler(nvrtc_cache(spec.cache_dir)) as compiler:
            lints = LintCache(spec.cache_dir)
            connection.send(READY)
            for case, program in questions(connection):
                answer = _prepared(cast("Program", program), case, spec.gpu, lints, compiler)
                if not reply(connection, answer):
                    return
    except WarpsmithError as error:
        connection.send(WorkerFailure.of(error))


def _prepared(
    program: Program, case: Case, gpu: GpuSpec, lints: LintCache, compiler: NvrtcCompiler
) -> WorkerFailure | None:
    try:
        plan, complaints = validate(program, case.problem, gpu)
        if plan is None or complaints or any(f.severity == "severe" for f in lints.findings(plan)):
            return None
        plans = [plan] if case.twin is case.problem else [plan, bind(program, case.twin)]
        for one in plans:
            if one.entries:
                compiler.compile(compile_request(one, gpu))
    except BindError:
        # The twin's shapes do not fit: the worker's to say.
        return None
    except WarpsmithError as error:
        return WorkerFailure.of(error)
    except Exception:  # noqa: BLE001
        # The process boundary, as in tools.worker.
        return WorkerFailure("Bug", traceback.format_exc())
    return None
