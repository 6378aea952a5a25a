"""The evaluation pool: worker processes with hard deadlines, replacements and spares, behind one small port.

`evaluate` blocks its caller until a worker is free and has answered; call it from as many threads as there are
candidates. Queue wait does not count against a deadline. A worker that crashes or overruns is killed with
everything it started, its candidate gets the status, and a spare, started long before, takes its place.
Candidates that wait for the device are linted and compiled meanwhile, so that the device waits for neither.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, cast

from memory.errors import WarpsmithError
from memory.records import Diagnostic, Evaluation, Stage, Status
from tools.devices.port import Baselines
from tools.precompile import Precompiler
from tools.worker import Answer, BaselineJob, EvaluationJob, Job, LastAnswer, WorkerSpec, serve
from tools.worker_process import Died, Overrun, WorkerFailure, WorkerProcess


class EvaluationPool(Protocol):
    """Where jobs are answered: local processes, or several machines."""

    def evaluate(self, job: EvaluationJob) -> Evaluation | None:
        """The verdict; None for a soak that passed. Raises WarpsmithError for our own or the machine's fault."""
        ...

    def measure_baselines(self, job: BaselineJob) -> Baselines:
        """Times of PyTorch itself on the device that the jobs run on."""
        ...

    @property
    def callers(self) -> int:
        """Threads that keep the pool busy when each evaluates one candidate after another."""
        ...

    def warm(self) -> object:
        """Start what answers now rather than with the first job; returns at once."""
        ...


@dataclass(frozen=True)
class _Ended:
    """A worker was lost over a job."""

    status: Status
    message: str


class LocalPool:
    """Worker processes on this machine, started when first needed or warmed. Use as a context manager."""

    def __init__(self, spec: WorkerSpec, size: int, *, spares: int = 0, compilers: int = 0) -> None:
        """spares: started workers held ready to replace a lost one. compilers: processes that work ahead."""
        self._spec = spec
        self._size = size
        self._compilers = compilers
        self._idle: queue.SimpleQueue[WorkerProcess | None] = queue.SimpleQueue()
        self._spares: queue.SimpleQueue[WorkerProcess] = queue.SimpleQueue()
        self._spares_missing = threading.Semaphore(spares)
        self._all: list[WorkerProcess] = []
        self._counting = threading.Lock()
        self._under_way = 0
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
        if self._precompiler is not None:
            self._precompiler.warm()
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
        with self._entered() as others:
            # Alone, it would wait for its preparation while the device waits for it.
            if self._precompiler is not None and others:
                self._precompiler.prepare(job.program, job.case)
            answer = self._answer(job)
        if isinstance(answer, WorkerFailure):
            raise answer.error(f"evaluating program {job.program.content_hash()[:12]}")
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
            raise answer.error("measuring the baselines")
        raise WarpsmithError(f"a worker answered a baseline job with {type(answer).__name__}")

    @contextmanager
    def _entered(self) -> Iterator[int]:
        """How many evaluations are under way besides this one."""
        with self._counting:
            others = self._under_way
            self._under_way += 1
        try:
            yield others
        finally:
            with self._counting:
                self._under_way -= 1

    def _answer(self, job: Job) -> Answer | _Ended:
        worker = self._idle.get()
        try:
            if worker is None:
                worker = self._start()
                self._fill_spares()
            return self._ask(worker, job)
        finally:
            usable = worker is not None and worker.usable
            if worker is not None and not usable:
                self._all.remove(worker)
            self._idle.put(worker if usable else self._spare())

    def _spare(self) -> WorkerProcess | None:
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

    def _start(self) -> WorkerProcess:
        worker = WorkerProcess(serve, self._spec)
        self._all.append(worker)
        return worker

    def _ask(self, worker: WorkerProcess, job: Job) -> Answer | _Ended:
        try:
            answer = cast("Answer", worker.ask(job.case, job.question, job.deadline_s))
        except Overrun:
            return _Ended(Status.TIMED_OUT, f"the evaluation took longer than {job.deadline_s:.0f} s")
        except Died as died:
            message = f"the evaluation ended its worker process (exit code {died.exit_code})"
            return _Ended(Status.RUNTIME_ERROR, message)
        if isinstance(answer, LastAnswer):
            worker.kill()
            return answer.evaluation
        return answer


def _ended(job: EvaluationJob, how: _Ended, spec: WorkerSpec) -> Evaluation:
    """The verdict on a candidate whose worker had to be replaced."""
    return Evaluation(
        program_hash=job.program.content_hash(),
        problem_hash=job.case.problem_hash,
        policy_hash=job.case.policy_hash,
        device=spec.device.name,
        status=how.status,
        stage=Stage.SCHEMA,
        diagnostics=(Diagnostic(stage=Stage.SCHEMA, rule="worker", message=how.message),),
    )
