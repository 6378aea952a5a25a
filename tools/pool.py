"""The evaluation pool: worker processes with hard deadlines and replacements, behind one small port.

`evaluate` blocks its caller until a worker is free and has answered; call it from as many threads as there are
candidates. Queue wait does not count against a deadline. A worker that crashes or overruns is killed with
everything it started, its candidate gets the status, and a fresh worker takes its place.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Protocol

from memory.errors import ToolMissing, WarpsmithError, WorkerLost
from memory.records import Diagnostic, Evaluation, Stage, Status
from tools.worker import Answer, EvaluationJob, WorkerFailure, WorkerSpec, serve

START_DEADLINE_S = 120.0
"""A worker imports torch and finds its compilers before it is ready; a loaded machine takes its time."""


class EvaluationPool(Protocol):
    """Where jobs are answered: local processes, or several machines."""

    def evaluate(self, job: EvaluationJob) -> Evaluation | None:
        """The verdict; None for a soak that passed. Raises WarpsmithError for our own or the machine's fault."""
        ...

    @property
    def size(self) -> int:
        """Jobs answered at once."""
        ...


@dataclass
class _Worker:
    """One process and our end of its pipe."""

    process: SpawnProcess
    connection: Connection
    ready: bool = False

    def wait_until_ready(self) -> None:
        """Raises WorkerLost where the process dies or stalls while it starts."""
        if self.ready:
            return
        try:
            if not self.connection.poll(START_DEADLINE_S):
                raise WorkerLost(f"a worker was not ready after {START_DEADLINE_S:.0f} s")
            greeting = self.connection.recv()
        except EOFError as error:
            self.process.join(5)
            raise WorkerLost(f"a worker died while starting (exit code {self.process.exitcode})") from error
        if isinstance(greeting, WorkerFailure):
            raise _as_error(greeting, "starting a worker")
        self.ready = True

    def kill(self) -> None:
        """End the process and its group."""
        if self.process.pid is not None and self.process.is_alive():
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                # It had not made its own group yet, or is gone.
                self.process.kill()
        self.process.join()
        self.connection.close()


class LocalPool:
    """Worker processes on this machine, started when first needed or warmed. Use as a context manager."""

    def __init__(self, spec: WorkerSpec, size: int) -> None:
        self._spec = spec
        self._size = size
        self._context = multiprocessing.get_context("spawn")
        self._idle: queue.SimpleQueue[_Worker | None] = queue.SimpleQueue()
        self._all: list[_Worker] = []
        for _ in range(size):
            self._idle.put(None)

    def __enter__(self) -> LocalPool:
        return self

    def warm(self) -> LocalPool:
        """Start every worker now; they get ready while the caller does something else."""
        for worker in [self._idle.get() or self._start() for _ in range(self._size)]:
            self._idle.put(worker)
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._all:
            worker.kill()

    @property
    def size(self) -> int:
        """Number of workers."""
        return self._size

    def evaluate(self, job: EvaluationJob) -> Evaluation | None:
        """Answer one job on the next free worker. Raises what the worker raised."""
        worker = self._idle.get()
        try:
            worker = worker or self._start()
            answer = self._ask(worker, job)
        finally:
            # A worker that had to be killed leaves a free place; the next job starts another.
            self._idle.put(None if worker is None or worker.connection.closed else worker)
        if isinstance(answer, WorkerFailure):
            raise _as_error(answer, f"evaluating program {job.program.content_hash()[:12]}")
        return answer

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=serve, args=(theirs, self._spec), daemon=True)
        process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._all.append(worker)
        return worker

    def _ask(self, worker: _Worker, job: EvaluationJob) -> Answer:
        try:
            worker.wait_until_ready()
            worker.connection.send(job)
            if worker.connection.poll(job.deadline_s):
                answer: Answer = worker.connection.recv()
                return answer
            status, message = Status.TIMED_OUT, f"the evaluation took longer than {job.deadline_s:.0f} s"
            self._end(worker)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self._end(worker)
            code = worker.process.exitcode
            status = Status.RUNTIME_ERROR
            message = f"the evaluation ended its worker process (exit code {code})"
        except WarpsmithError:
            self._end(worker)
            raise
        return _ended(job, status, message, self._spec)

    def _end(self, worker: _Worker) -> None:
        worker.kill()
        self._all.remove(worker)


def _ended(job: EvaluationJob, status: Status, message: str, spec: WorkerSpec) -> Evaluation:
    """The verdict on a candidate whose worker had to be replaced."""
    return Evaluation(
        program_hash=job.program.content_hash(),
        problem_hash=job.case.problem.content_hash(),
        policy_hash=job.case.policy.content_hash(),
        device=spec.device.name,
        status=status,
        stage=Stage.SCHEMA,
        diagnostics=(Diagnostic(stage=Stage.SCHEMA, rule="worker", message=message),),
    )


def _as_error(failure: WorkerFailure, doing: str) -> WarpsmithError:
    if failure.kind == ToolMissing.__name__:
        return ToolMissing(failure.message)
    return WarpsmithError(f"{doing} failed by our own fault: {failure.message}")
