"""What runs on a machine of the cluster: an actor that owns what a pool of one worker owns on a single machine.

Here: the actor, and what passes between it and the pool. Not here: who starts and watches actors (tools.ray_seats).
A kernel runs in a worker process below the actor, with hard deadlines and a spare; so what it does to its process
never ends the actor, and an actor that is gone means a machine that is gone, not a bad candidate.
Covers: machines that share no files with the one that asks. Does not cover: machines that do not trust each other.
"""

from __future__ import annotations

import hashlib
import pickle
import socket
import threading
import time
import traceback
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import ray
import torch

from memory.errors import BadInput, WarpsmithError
from memory.records import Evaluation, Status
from tools.case import Case
from tools.devices.build import DeviceSpec, cuda_spec
from tools.parcel import Files, Shelf, relocated
from tools.pool import LocalPool
from tools.worker import Answer, BaselineJob, Job, Question, WorkerSpec
from tools.worker_process import WorkerFailure

FETCH_S = 300.0
"""Seconds that a case or a trial may take to arrive."""
CASES_KEPT = 4
SETTLED_S = 1.0
"""A machine that is being shut down ends its processes one by one: an actor that lives this long after its worker's end
had the candidate end it."""


@dataclass(frozen=True)
class SeatSpec:
    """What each actor of a pool owns."""

    device: DeviceSpec
    cache_dir: str
    """Compile caches and trials, on the actor's machine; `~` is that machine's."""
    spares: int
    compilers: int

    @property
    def slots(self) -> int:
        """Jobs that keep one actor's device and compilers busy."""
        return 1 + self.compilers


@dataclass(frozen=True)
class SeatReport:
    """An actor is ready."""

    node: str
    code: str
    """Hash of the verifier's sources; machines may not judge by different ones."""
    torch: str
    device: str


@dataclass(frozen=True)
class CaseTicket:
    """A case that need not travel where it has been before."""

    key: str
    body: Any
    """Reference to the pickled case, its trials' folders named by digest."""
    trials: dict[str, Any]
    """References to the trials' files, by digest."""


@cache
def code_digest() -> str:
    """Identity of the code that reaches verdicts, as it lies on this machine."""
    root, digest = Path(__file__).resolve().parents[1], hashlib.sha256()
    for package in ("memory", "tools"):
        for path in sorted((root / package).rglob("*.*")):
            if path.suffix in (".py", ".cpp", ".h", ".hpp", ".cuh"):
                digest.update(f"{path.relative_to(root)}\n".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


class SeatActor:
    """One device of one machine. Started by Ray; every method but `beat` may be called by several threads."""

    def __init__(self, spec: SeatSpec) -> None:
        self._spec = spec
        self._cases: OrderedDict[str, Case] = OrderedDict()
        self._receiving = threading.Lock()

    def start(self) -> SeatReport | WorkerFailure:
        """Begin to start the worker. A machine that cannot be used says why."""
        node, device = socket.gethostname(), self._spec.device
        try:
            if device.kind == "cuda":
                # Ray shows an actor its own GPU alone.
                device = replace(device, gpu=cuda_spec(0).gpu, index=0)
            folder = _writable(self._spec.cache_dir)
            self._shelf = Shelf(folder)
            self._pool = LocalPool(
                WorkerSpec(device, folder), 1, spares=self._spec.spares, compilers=self._spec.compilers
            ).warm()
        except WarpsmithError as error:
            return WorkerFailure.of(error)
        return SeatReport(node, code_digest(), torch.__version__, device.name)

    def answer(self, ticket: CaseTicket, question: Question) -> Answer:
        """The verdict on a job, or the machine's failure. Queues for the device like a thread of a local pool."""
        fetches = {digest: partial(_fetch_files, ref) for digest, ref in ticket.trials.items()}
        with self._shelf.holding(fetches):
            job = question(self._case(ticket))
            try:
                answer = self._judge(job)
            except WarpsmithError as error:
                return WorkerFailure.of(error)
            except Exception:  # noqa: BLE001
                # The process boundary, as in tools.worker.
                return WorkerFailure("Bug", traceback.format_exc())
        if isinstance(answer, Evaluation) and _lost_its_worker(answer):
            time.sleep(SETTLED_S)
        return answer

    def beat(self, seconds: float) -> None:
        """Returns after some seconds: a sign of life that its caller need not ask for all the time."""
        time.sleep(seconds)

    def close(self) -> None:
        """End every process, and remove the trials."""
        self._pool.__exit__()
        self._shelf.close()

    def _judge(self, job: Job) -> Answer:
        return self._pool.measure_baselines(job) if isinstance(job, BaselineJob) else self._pool.evaluate(job)

    def _case(self, ticket: CaseTicket) -> Case:
        """The same object for the same ticket, so that it goes over the worker's pipe once."""
        with self._receiving:
            case = self._cases.get(ticket.key)
            if case is None:
                case = relocated(_fetch_case(ticket.body), lambda digest: self._shelf.place(digest.name))
                self._cases[ticket.key] = case
                while len(self._cases) > CASES_KEPT:
                    self._cases.popitem(last=False)
            return case


def _lost_its_worker(evaluation: Evaluation) -> bool:
    return evaluation.status is Status.RUNTIME_ERROR and evaluation.diagnostics[0].rule == "worker"


def _fetch_case(reference: object) -> Case:
    return cast("Case", pickle.loads(ray.get(reference, timeout=FETCH_S)))


def _fetch_files(reference: object) -> Files:
    return cast("Files", ray.get(reference, timeout=FETCH_S))


def _writable(folder: str) -> Path:
    """The folder on this machine, made where absent. Raises BadInput with the machine's name."""
    try:
        path = Path(folder).expanduser()
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise BadInput(
            f"cannot write to {folder!r} on {socket.gethostname()}: {error}; choose a home that every machine can have,"
            " such as ~/.warpsmith"
        ) from error
    return path
