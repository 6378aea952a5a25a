"""The evaluation pool over the machines of a Ray cluster: one actor per GPU, or per core where kernels are simulated.

Here: how a job finds an actor, and a second one where the first is lost. Not here: keeping actors (tools.ray_seats),
what they do (tools.ray_actor), how trials travel (tools.ray_parcels).
Queue wait does not count against a deadline: those are kept by the worker processes beside the device.
Invariants: a job ends with a verdict or an exception; a job whose machine was lost is asked again elsewhere, for its
candidate has done nothing wrong; every wait for Ray has a limit.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import cast

import ray
import torch
from ray.exceptions import RayError, RayTaskError

from memory.errors import WarpsmithError, WorkerLost
from memory.records import Evaluation
from tools.devices.port import Baselines
from tools.ray_actor import CaseTicket, SeatActor, SeatReport, SeatSpec, code_digest
from tools.ray_cluster import connected, shortage, units
from tools.ray_parcels import Dispatch
from tools.ray_seats import GET_S, POLL_S, RESTART_S, Patience, Seat, Seats, fault_of, first_line, last_line
from tools.worker import Answer, BaselineJob, EvaluationJob, Job, LastAnswer
from tools.worker_process import WorkerFailure

ATTEMPTS = 4
"""Machines, or workers that do not start, that one job may lose before it is called a fault."""
COMPILERS = 8
"""Processes at most that compile ahead of one GPU."""


class MachineLost(Exception):
    """The machine went away over a job."""


class RayPool:
    """Actors on the machines of a cluster, started when first needed or warmed. Use as a context manager."""

    def __init__(
        self, spec: SeatSpec, size: int, *, address: str | None = None, patience: Patience | None = None
    ) -> None:
        """size: actors; 0 for as many as the cluster has GPUs (or cores) when it is joined. `spec.compilers` 0 on a GPU
        means its share of the cores."""
        self._spec = spec
        self._size = size
        self._address = address
        self._patience = patience or Patience()
        self._wanted = {"CPU": 1, "GPU": 1 if spec.device.kind == "cuda" else 0}
        self._dispatch = Dispatch()
        self._seats: Seats | None = None
        self._starting = threading.Lock()
        self._stack = ExitStack()

    def __enter__(self) -> RayPool:
        """Raises: BadInput or WorkerLost where there is no such cluster."""
        self._stack.enter_context(connected(self._address))
        cores, gpus = units("CPU"), units("GPU")
        on_gpu = self._spec.device.kind == "cuda"
        self._size = self._size or max(1, gpus if on_gpu else cores)
        if on_gpu and not self._spec.compilers:
            share = min(COMPILERS, max(1, cores // max(gpus, 1)))
            self._spec = replace(self._spec, compilers=share)
        return self

    def __exit__(self, *_: object) -> None:
        if self._seats is not None:
            self._seats.close()
        self._stack.close()

    @property
    def callers(self) -> int:
        """Threads that keep every actor busy when each evaluates one candidate after another."""
        return self._size * self._spec.slots

    def warm(self) -> RayPool:
        """Start every actor now."""
        self._started()
        return self

    def nodes(self) -> list[str]:
        """The machine of every actor that is ready."""
        return self._started().nodes()

    def evaluate(self, job: EvaluationJob) -> Evaluation | None:
        """Answer one job on the next free actor. Raises what its machine lacks; WorkerLost where none is left."""
        answer = self._answer(job, f"evaluating program {job.program.content_hash()[:12]}")
        if isinstance(answer, Baselines | LastAnswer):
            raise WarpsmithError(f"an actor answered an evaluation with {type(answer).__name__}")
        return answer

    def measure_baselines(self, job: BaselineJob) -> Baselines:
        """Times of PyTorch itself on one of the actors' devices."""
        answer = self._answer(job, "measuring the baselines")
        if not isinstance(answer, Baselines):
            raise WarpsmithError(f"an actor answered a baseline job with {type(answer).__name__}")
        return answer

    def _answer(self, job: Job, doing: str) -> Evaluation | LastAnswer | Baselines | None:
        seats, ticket = self._started(), self._dispatch.ticket(job.case)
        why = ""
        for _ in range(ATTEMPTS):
            seat = seats.take()
            try:
                answer = self._ask(seats, seat, ticket, job)
            except MachineLost as lost:
                why = str(lost)
            else:
                if not isinstance(answer, WorkerFailure):
                    return answer
                fault = fault_of(answer, doing)
                if not isinstance(fault, WorkerLost):
                    raise fault
                why = str(fault)
            finally:
                seats.give_back(seat)
            # Others may have been lost with it, and are found out meanwhile.
            time.sleep(2 * RESTART_S)
        raise WorkerLost(f"{doing} was given up by {ATTEMPTS} machines one after another, the last: {why}")

    def _ask(self, seats: Seats, seat: Seat, ticket: CaseTicket, job: Job) -> Answer:
        """Raises: MachineLost; WarpsmithError for a bug of ours in the actor."""
        reference = seat.actor.answer.remote(ticket, job.question)
        try:
            while not ray.wait([reference], timeout=POLL_S)[0]:
                if seat.lost is not None:
                    raise MachineLost(seat.lost)
            return cast("Answer", ray.get(reference, timeout=GET_S))
        except RayTaskError as error:
            if not isinstance(error.cause, RayError):
                raise WarpsmithError(f"an actor on {seat.node} failed by our own fault: {error}") from error
            # It could not fetch what it was sent.
            why = last_line(error)
        except RayError as error:
            why = first_line(error)
        seats.lose(seat, why)
        raise MachineLost(why)

    def _started(self) -> Seats:
        with self._starting:
            if self._seats is None:
                self._seats = self._begun()
            return self._seats

    def _begun(self) -> Seats:
        actor = ray.remote(concurrency_groups={"beats": 1, "end": 1})(SeatActor).options(
            num_cpus=self._wanted["CPU"],
            num_gpus=self._wanted["GPU"],
            max_restarts=0,
            scheduling_strategy="SPREAD",
            max_concurrency=self._spec.slots,
        )
        here = SeatReport(socket.gethostname(), code_digest(), torch.__version__, self._spec.device.name)
        return Seats(
            lambda: actor.remote(self._spec),
            here,
            count=self._size,
            slots=self._spec.slots,
            patience=self._patience,
            shortage=lambda: shortage({name: n for name, n in self._wanted.items() if n}),
        )
