"""The evaluation pool: worker processes with hard deadlines, replacements and spares, behind one small port.

`evaluate` blocks its caller until a worker is free and has answered; call it from as many threads as there are
candidates. Queue wait does not count against a deadline. A worker that crashes or overruns is killed with
everything it started, its candidate gets the status, and a spare, started long before, takes its place.
Candidates that wait for the device are compiled meanwhile, so that the device never waits for a compiler.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Protocol

from memory.errors import BadInput, OutOfDeviceMemory, ToolMissing, WarpsmithError, WorkerLost
from memory.records import Diagnostic, Evaluation, Stage, Status
from tools.devices.port import Baselines
from tools.precompile import Precompiler
from tools.worker import Answer, BaselineJob, EvaluationJob, Job, LastAnswer, WorkerFailure, WorkerSpec, serve

START_DEADLINE_S = 120.0
"""A worker imports torch and finds its compilers before it is ready; a loaded machine takes its time."""


class EvaluationPool(Protocol):
    """Where jobs are answered: local processes, or several machines."""

    def evaluate(self, job: EvaluationJob) -> Evaluation | None:
        """The verdict; None for a soak that passed. Raises WarpsmithError for our own or the machine's fault."""
        ...

    def measure_baselines(self, job: BaselineJob) -> Baselines:
        """Times of PyTorch itself on the device that the jobs run on."""
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


@dataclass(frozen=True)
class _Ended:
    """A worker was lost over a job."""

    status: Status
    message: str


class LocalPool:
    """Worker processes on this machine, started when first needed or warmed. Use as a context manager."""

    def __init__(self, spec: WorkerSpec, size: int, *, spares: int = 0, compilers: int = 0) -> None:
        """spares: started workers held ready to replace a lost one. compilers: compiles ahead of the workers."""
        self._spec = spec
        self._size = size
        self._compilers = compilers
        self._context = multiprocessing.get_context("spawn")
        self._idle: queue.SimpleQueue[_Worker | None] = queue.SimpleQueue()
        self._spares: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        self._spares_missing = threading.Semaphore(spares)
        self._all: list[_Worker] = []
        self._precompiler = Precompiler(spec.device, spec.cache_dir, compilers) if compilers else None
        for _ in range(size):
            self._idle.put(None)

    def __enter__(self) -> LocalPool:
        return self

    def warm(self) -> LocalPool:
        """Start every worker and spare now; they get ready while the caller does something else."""
        for worker in [self._idle.get() or self._start() for _ in range(self._size)]:
            self._idle.put(worker)
        self._fill_spares()
        return self

    def __exit__(self, *_: object) -> None:
        for worker in list(self._all):
            worker.kill()
        if self._precompiler is not None:
            self._precompiler.close()

    @property
    def size(self) -> int:
        """Number of workers."""
        return self._size

    @property
    def callers(self) -> int:
        """Threads that keep every worker and compiler busy when each evaluates one candidate after another."""
        return self._size + self._compilers

    def evaluate(self, job: EvaluationJob) -> Evaluation | None:
        """Answer one job on the next free worker. Raises what the worker raised."""
        if self._precompiler is not None:
            self._precompiler.compile(job.program, job.case.problem)
            if job.case.twin is not job.case.problem:
                self._precompiler.compile(job.program, job.case.twin)
        answer = self._answer(job)
        if isinstance(answer, WorkerFailure):
            raise _as_error(answer, f"evaluating program {job.program.content_hash()[:12]}")
        if isinstance(answer, _Ended):
            return _ended(job, answer, self._spec)
        if isinstance(answer, Baselines | LastAnswer):
            raise WarpsmithError(f"a worker answered an evaluation with {type(answer).__name__}")
        return answer

    def measure_baselines(self, job: BaselineJob) -> Baselines:
        """Times of PyTorch itself on the workers' device; what ends the worker leaves every baseline absent."""
        answer = self._answer(job)
        if isinstance(answer, Baselines):
            return answer
        if isinstance(answer, _Ended):
            return Baselines((), dict.fromkeys(("eager", *job.modes), answer.message))
        if isinstance(answer, WorkerFailure):
            raise _as_error(answer, "measuring the baselines")
        raise WarpsmithError(f"a worker answered a baseline job with {type(answer).__name__}")

    def _answer(self, job: Job) -> Answer | _Ended:
        worker = self._idle.get()
        try:
            if worker is None:
                worker = self._start()
                self._fill_spares()
            return self._ask(worker, job)
        finally:
            usable = worker is not None and not worker.connection.closed
            self._idle.put(worker if usable else self._spare())

    def _spare(self) -> _Worker | None:
        """A worker that is ready or nearly so; None leaves the place free, and the next job starts one."""
        try:
            spare = self._spares.get_nowait()
        except queue.Empty:
            return None
        self._spares_missing.release()
        self._fill_spares()
        return spare

    def _fill_spares(self) -> None:
        while self._spares_missing.acquire(blocking=False):
            self._spares.put(self._start())

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=serve, args=(theirs, self._spec), daemon=True)
        process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._all.append(worker)
        return worker

    def _ask(self, worker: _Worker, job: Job) -> Answer | _Ended:
        try:
            worker.wait_until_ready()
            worker.connection.send(job)
            if worker.connection.poll(job.deadline_s):
                answer: Answer = worker.connection.recv()
                if isinstance(answer, LastAnswer):
                    self._end(worker)
                    return answer.evaluation
                return answer
            self._end(worker)
            return _Ended(Status.TIMED_OUT, f"the evaluation took longer than {job.deadline_s:.0f} s")
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self._end(worker)
            code = worker.process.exitcode
            return _Ended(Status.RUNTIME_ERROR, f"the evaluation ended its worker process (exit code {code})")
        except WarpsmithError:
            self._end(worker)
            raise

    def _end(self, worker: _Worker) -> None:
        worker.kill()
        self._all.remove(worker)


def _ended(job: EvaluationJob, how: _Ended, spec: WorkerSpec) -> Evaluation:
    """The verdict on a candidate whose worker had to be replaced."""
    return Evaluation(
        program_hash=job.program.content_hash(),
        problem_hash=job.case.problem.content_hash(),
        policy_hash=job.case.policy.content_hash(),
        device=spec.device.name,
        status=how.status,
        stage=Stage.SCHEMA,
        diagnostics=(Diagnostic(stage=Stage.SCHEMA, rule="worker", message=how.message),),
    )


def _as_error(failure: WorkerFailure, doing: str) -> WarpsmithError:
    for kind in (ToolMissing, BadInput, OutOfDeviceMemory):
        if failure.kind == kind.__name__:
            return kind(failure.message)
    return WarpsmithError(f"{doing} failed by our own fault: {failure.message}")
