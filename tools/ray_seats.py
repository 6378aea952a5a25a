"""Seats in a cluster: actors that are started, listened to, and started again elsewhere when their machine is lost.

Here: one thread that keeps as many actors as were asked for, and who gives a job to which. Not here: the jobs
(tools.ray_pool) or what an actor does (tools.ray_actor). On which machine an actor starts is Ray's decision.
Invariants: a loss is noticed whether or not a job is under way; whoever waits for a seat gets one, or an exception: at
once where a machine cannot be used, and after `wait_s` without any seat where none is left.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError

from memory.errors import BadInput, ToolMissing, WarpsmithError, WorkerLost
from tools.ray_actor import SeatReport
from tools.worker_process import WorkerFailure

POLL_S = 0.5
RESTART_S = 1.0
"""Pause before an actor is started in place of a lost one."""
GET_S = 60.0
"""Seconds that a short answer may take to arrive once it is there."""


@dataclass(frozen=True)
class Patience:
    """How long a pool waits for machines, in seconds."""

    wait_s: float = 180.0
    """Without any actor that is ready: then there is no machine left."""
    beat_s: float = 10.0
    """An actor says so often that it is alive."""
    silent_s: float = 60.0
    """One that is late by this is given up: its machine hangs, or the network is cut."""


@dataclass(eq=False)
class Seat:
    """One actor, and how many jobs it has."""

    actor: Any
    news: Any
    """Reference to what it says next: that it is ready, then that it is alive."""
    due: float
    """When silence means that it is lost; of no meaning before it is ready."""
    node: str | None = None
    """Its machine, once it is ready."""
    jobs: int = 0
    lost: str | None = None
    """Why it is gone."""


class Seats:
    """Up to `count` actors with `slots` jobs each. Close it to end them."""

    def __init__(
        self,
        start: Callable[[], Any],
        expected: SeatReport,
        *,
        count: int,
        slots: int,
        patience: Patience,
        shortage: Callable[[], str],
    ) -> None:
        """start: begins an actor. expected: what each must report, its node aside. shortage: why there is none."""
        self._start = start
        self._expected = expected
        self._count = count
        self._slots = slots
        self._patience = patience
        self._shortage = shortage
        self._changed = threading.Condition()
        self._seats: list[Seat] = []
        self._fault: WarpsmithError | None = None
        self._closed = False
        self._next_start = 0.0
        self._last_ready = time.monotonic()
        self._keeper = threading.Thread(target=self._keep, name="seats", daemon=True)
        self._keeper.start()

    def take(self) -> Seat:
        """The ready seat with the fewest jobs, waiting for one. Raises: WorkerLost, or what a machine lacks."""
        with self._changed:
            while True:
                if self._fault is not None:
                    raise self._fault
                if self._closed:
                    raise WorkerLost("the pool was closed while a candidate waited for a machine")
                ready = [seat for seat in self._seats if seat.node is not None]
                free = [seat for seat in ready if seat.jobs < self._slots]
                if free:
                    seat = min(free, key=lambda one: one.jobs)
                    seat.jobs += 1
                    return seat
                wait_s = self._patience.wait_s
                if not ready and time.monotonic() - self._last_ready > wait_s:
                    raise WorkerLost(f"no machine could take work for {wait_s:g} s: {self._shortage()}")
                self._changed.wait(POLL_S)

    def give_back(self, seat: Seat) -> None:
        """A job of the seat is done, or lost with it."""
        with self._changed:
            seat.jobs -= 1
            self._changed.notify_all()

    def lose(self, seat: Seat, why: str) -> None:
        """Give a seat up; another actor is started in its place."""
        with self._changed:
            if seat.lost is not None:
                return
            seat.lost = why
            self._seats.remove(seat)
            self._next_start = time.monotonic() + RESTART_S
            self._changed.notify_all()
        # One that only seems dead must not go on using its device.
        ray.kill(seat.actor, no_restart=True)

    def nodes(self) -> list[str]:
        """The machine of every ready seat."""
        with self._changed:
            return [seat.node for seat in self._seats if seat.node is not None]

    def close(self, wait_s: float = 10.0) -> None:
        """End every actor, with what it started."""
        with self._changed:
            self._closed = True
            seats, self._seats = self._seats, []
            for seat in seats:
                seat.lost = "the pool was closed"
            self._changed.notify_all()
        self._keeper.join()
        ending = [
            seat.actor.close.options(concurrency_group="end").remote()
            for seat in seats
            if seat.node is not None
        ]
        if ending:
            ray.wait(ending, num_returns=len(ending), timeout=wait_s)
        for seat in seats:
            ray.kill(seat.actor, no_restart=True)

    def _keep(self) -> None:
        """The thread: start what is missing, hear what there is."""
        try:
            while not self._closed:
                self._fill()
                with self._changed:
                    listening = {seat.news: seat for seat in self._seats}
                if not listening:
                    time.sleep(POLL_S)
                    continue
                heard, _ = ray.wait(list(listening), num_returns=len(listening), timeout=POLL_S)
                for news in heard:
                    self._hear(listening[news])
                self._look_at_the_clock()
        except RayError as error:
            self._stop(WorkerLost(f"the Ray cluster cannot be used any more: {first_line(error)}"))
        finally:
            if not self._closed and self._fault is None:
                self._stop(WorkerLost("the seats of the pool are not watched any more, by our own fault"))

    def _fill(self) -> None:
        with self._changed:
            missing = self._count - len(self._seats)
            if self._fault is not None or self._closed or time.monotonic() < self._next_start:
                return
            for _ in range(missing):
                actor = self._start()
                self._seats.append(Seat(actor, actor.start.remote(), due=0.0))

    def _hear(self, seat: Seat) -> None:
        try:
            said = ray.get(seat.news, timeout=GET_S)
        except RayTaskError as error:
            where = "this machine's Warpsmith cannot run on another one"
            self._stop(ToolMissing(f"{where}: {last_line(error)}; install the same version there"))
            return
        except (RayActorError, GetTimeoutError) as error:
            self.lose(seat, first_line(error))
            return
        if isinstance(said, WorkerFailure):
            self._stop(fault_of(said, "starting a worker"))
            return
        if isinstance(said, SeatReport):
            fault = unfit(said, self._expected)
            if fault is not None:
                self._stop(fault)
                return
        with self._changed:
            if isinstance(said, SeatReport):
                seat.node = said.node
                self._changed.notify_all()
            seat.news = seat.actor.beat.options(concurrency_group="beats").remote(self._patience.beat_s)
            seat.due = time.monotonic() + self._patience.beat_s + self._patience.silent_s

    def _look_at_the_clock(self) -> None:
        now = time.monotonic()
        with self._changed:
            ready = [seat for seat in self._seats if seat.node is not None]
            if ready:
                self._last_ready = now
        for seat in ready:
            if now > seat.due:
                self.lose(seat, f"{seat.node} has been silent for {self._patience.silent_s:g} s")

    def _stop(self, fault: WarpsmithError) -> None:
        with self._changed:
            self._fault = self._fault or fault
            self._changed.notify_all()


def unfit(said: SeatReport, expected: SeatReport) -> WarpsmithError | None:
    """Why a machine may not judge candidates of this run; None where it may."""
    if said.code != expected.code:
        return BadInput(
            f"{said.node} has another Warpsmith than {expected.node}; install the same version on both"
        )
    if said.torch != expected.torch:
        return BadInput(
            f"{said.node} has torch {said.torch} and {expected.node} {expected.torch}; install the same one on both"
        )
    if said.device != expected.device:
        return BadInput(
            f"{said.node} has {said.device}, and this run is for {expected.device}; start Ray there with "
            "--num-gpus=0 to leave it out"
        )
    return None


def fault_of(failure: WorkerFailure, doing: str) -> WarpsmithError:
    """The exception that an actor caught, again."""
    # What an actor itself could not have is told whole by its message; the rest is its worker's.
    for kind in (WorkerLost, WarpsmithError):
        if failure.kind == kind.__name__:
            return kind(failure.message)
    return failure.error(doing)


def first_line(error: BaseException) -> str:
    """Ray's errors have many lines; the first says what happened."""
    return str(error).strip().partition("\n")[0]


def last_line(error: BaseException) -> str:
    """The last line of an error that carries a traceback."""
    return str(error).strip().rpartition("\n")[2]
