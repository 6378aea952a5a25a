"""The worker: a long-lived spawned process that owns a device and evaluates programs, one job at a time.

Covers: a crash or a hang of an evaluation ends the worker, never the run; nothing a candidate does reaches the
process that coordinates. A worker whose device
can run nothing more answers once and ends. Does not cover: kernels on a simulated device need no worker to be
contained, they run in a sandboxed process of their own; the worker is the second wall. Nothing that the user or an
agent wrote as host code is ever imported here.
"""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal, cast

from memory.disk import full_of, is_full
from memory.errors import WarpsmithError
from memory.records import Evaluation, Program
from tools.baselines import measured_baselines
from tools.case import Case
from tools.devices.build import DeviceSpec, open_device
from tools.devices.port import Baselines, CompileMode, Device, DeviceLost, DrawingDevice
from tools.evaluation import EvaluationLost, check_trials, evaluate, sanitize
from tools.lint_cache import LintCache
from tools.trial_cache import TrialCache
from tools.worker_process import READY, WorkerFailure, questions, reply, settle


@dataclass(frozen=True)
class EvaluationJob:
    """One question to a worker."""

    program: Program
    case: Case
    kind: Literal["evaluate", "soak", "sanitize"] = "evaluate"

    @property
    def deadline_s(self) -> float:
        """Wall seconds the answer may take; a soak gets the same allowance for every ten trials."""
        trials = len(self.case.trials) + len(self.case.drawn)
        scale = max(1.0, trials / 10) if self.kind == "soak" else 1.0
        return self.case.policy.deadline_s * scale

    @property
    def question(self) -> Question:
        """The job without its case."""
        return partial(EvaluationJob, self.program, kind=self.kind)


@dataclass(frozen=True)
class BaselineJob:
    """Asks a worker whose device runs in real time for the times of PyTorch itself."""

    case: Case
    modes: tuple[CompileMode, ...] = ()
    """torch.compile's modes to time besides eager; each takes seconds to minutes."""
    deadline_s: float = 900.0

    @property
    def question(self) -> Question:
        """The job without its case."""
        return partial(BaselineJob, modes=self.modes, deadline_s=self.deadline_s)


Job = EvaluationJob | BaselineJob
Question = Callable[[Case], Job]
"""What goes over the pipe, where the case has been before."""


@dataclass(frozen=True)
class WorkerSpec:
    """What a worker needs to open its device."""

    device: DeviceSpec
    cache_dir: Path


@dataclass(frozen=True)
class LastAnswer:
    """The verdict on a candidate that made the device unusable: the worker ends with it."""

    evaluation: Evaluation


Answer = Evaluation | LastAnswer | Baselines | WorkerFailure | None
"""None answers a soak or a sanitizing that passed."""


@dataclass
class _Workplace:
    """What a worker keeps from one candidate to the next."""

    device: Device
    lints: LintCache
    trials: TrialCache
    problem_hash: str | None = None

    def turn_to(self, case: Case) -> None:
        """Keep nothing of another problem: its uploads and arrays would take memory that this one may need."""
        if self.problem_hash not in (None, case.problem_hash):
            self.trials = TrialCache()
            if isinstance(self.device, DrawingDevice):
                self.device.release()
        self.problem_hash = case.problem_hash


def serve(connection: Connection, spec: WorkerSpec) -> None:
    """Entry of a worker process: answer jobs until the pipe closes."""
    settle()
    try:
        with open_device(spec.device, spec.cache_dir) as device:
            connection.send(READY)
            _answer_jobs(connection, _Workplace(device, LintCache(spec.cache_dir), TrialCache()))
    except WarpsmithError as error:
        # The machine lacks something: the coordinator raises it where the first job was given.
        connection.send(WorkerFailure.of(error))
    except OSError as error:
        if not is_full(error):
            raise
        connection.send(WorkerFailure.of(full_of(error, spec.cache_dir)))


def _answer_jobs(connection: Connection, place: _Workplace) -> None:
    for case, question in questions(connection):
        place.turn_to(case)
        answer = _answer(cast("Question", question)(case), place)
        heard = reply(connection, answer)
        if isinstance(answer, LastAnswer):
            # Not a return: closing a broken CUDA context raises or hangs.
            os._exit(0)
        if not heard:
            return


def _answer(job: Job, place: _Workplace) -> Answer:
    device, load, lint = place.device, place.trials.load, place.lints.findings
    try:
        if isinstance(job, BaselineJob):
            return measured_baselines(job.case, device, load, job.modes)
        if job.kind == "soak":
            return check_trials(job.program, job.case, device, load, lint)
        if job.kind == "sanitize":
            return sanitize(job.program, job.case, device, load, lint)
        return evaluate(job.program, job.case, device, load, lint)
    except EvaluationLost as lost:
        return LastAnswer(lost.evaluation)
    except WarpsmithError as error:
        return WorkerFailure.of(error)
    except DeviceLost:
        # A baseline broke the context; dying is how the pool learns that this worker is spent.
        os._exit(1)
    except OSError as error:
        if is_full(error):
            return WorkerFailure.of(full_of(error, Path(tempfile.gettempdir())))
        return WorkerFailure("Bug", traceback.format_exc())
    except Exception:  # noqa: BLE001
        # The process boundary: what is left is a bug of ours. It is reported whole and raised by the pool.
        return WorkerFailure("Bug", traceback.format_exc())
