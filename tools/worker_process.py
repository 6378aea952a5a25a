"""A long-lived spawned process that answers questions about cases: both ends of its pipe.

Here: starting, asking with a deadline, killing; and, inside, receiving. Not here: what is answered (tools.worker,
tools.precompile) and who asks when (tools.pool). A case travels once: questions about the same one go without it, for
a large graph takes longer to send than a small kernel to run.
Invariant: `ask` ends within its deadline plus the time of one kill; a process that overran or died is killed with
everything it started; one whose parent died ends within a second.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from types import ModuleType
from typing import TypeVar

from memory.errors import BadInput, DiskFull, OutOfDeviceMemory, ToolMissing, WarpsmithError, WorkerLost
from tools.case import Case

START_DEADLINE_S = 120.0
"""A worker imports torch and finds its compilers before it is ready; a loaded machine takes its time."""
ORPHAN_POLL_S = 0.5
ALLOCATOR_SETTINGS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
"""Where torch reads how to reserve GPU memory; the first is known to all of its versions."""
READY = "ready"
"""The first thing that a process sends when nothing is in its way."""

CARRIED: tuple[type[WarpsmithError], ...] = (ToolMissing, BadInput, DiskFull, OutOfDeviceMemory)
"""Faults of the machine or the input that are raised again as what they were."""

_S = TypeVar("_S")


@dataclass(frozen=True)
class WorkerFailure:
    """Our own or the machine's fault inside a worker, brought back to be raised where the job was given."""

    kind: str
    message: str

    @staticmethod
    def of(error: WarpsmithError) -> WorkerFailure:
        """What crosses the pipe of an exception."""
        return WorkerFailure(type(error).__name__, str(error))

    def error(self, doing: str) -> WarpsmithError:
        """The exception again, or one that says what was being done where it is a bug of ours."""
        for kind in CARRIED:
            if self.kind == kind.__name__:
                return kind(self.message)
        return WarpsmithError(f"{doing} failed by our own fault: {self.message}")


class Overrun(Exception):
    """No answer came in time; the process has been killed."""


class Died(Exception):
    """The process ended over the question."""

    def __init__(self, exit_code: int | None) -> None:
        super().__init__(f"exit code {exit_code}")
        self.exit_code = exit_code


FROZEN = "tools.frozen"
"""Module that a forking server imports last."""


class WorkerProcess:
    """One process and our end of its pipe. Asked by one thread at a time."""

    def __init__(self, serve: Callable[[Connection, _S], None], spec: _S, *, forked: bool = False) -> None:
        """Start `serve(connection, spec)` in a new process; it gets ready while the caller does something else.

        forked: from a server that has imported the module of `serve`, and nothing else, before: many of one kind then
        share what it imported, which for torch is 160 MB each. Not for a process that opens a device.
        """
        if forked:
            context: ForkServerContext | SpawnContext = get_context("forkserver")
            context.set_forkserver_preload([serve.__module__, FROZEN])
        else:
            context = get_context("spawn")
        _let_allocations_grow()
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, spec), daemon=True)
        with _nameless_main():
            self._process.start()
        theirs.close()
        self._ready = False
        self._case: Case | None = None

    @property
    def usable(self) -> bool:
        """False once it has been killed."""
        return not self._connection.closed

    def ask(self, case: Case, question: object, deadline_s: float) -> object:
        """The answer to a question about a case, within `deadline_s` from when the process is ready.

        Raises: Overrun or Died, the process being gone then; WorkerLost where it never got ready, or what it raised
        while it started.
        """
        try:
            self._wait_until_ready()
            self._connection.send((None if self._case is case else case, question))
            self._case = case
            if self._connection.poll(deadline_s):
                return self._connection.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError) as error:
            self.kill()
            raise Died(self._process.exitcode) from error
        except WarpsmithError:
            self.kill()
            raise
        self.kill()
        raise Overrun

    def kill(self) -> None:
        """End the process and its group."""
        if self._process.pid is not None and self._process.is_alive():
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                # It had not made its own group yet, or is gone.
                self._process.kill()
        self._process.join()
        self._connection.close()

    def _wait_until_ready(self) -> None:
        """Raises WorkerLost where the process dies or stalls while it starts."""
        if self._ready:
            return
        try:
            if not self._connection.poll(START_DEADLINE_S):
                raise WorkerLost(f"a worker was not ready after {START_DEADLINE_S:.0f} s")
            greeting = self._connection.recv()
        except EOFError as error:
            self._process.join(5)
            raise WorkerLost(f"a worker died while starting (exit code {self._process.exitcode})") from error
        if isinstance(greeting, WorkerFailure):
            raise greeting.error("starting a worker")
        self._ready = True


_STARTING = threading.Lock()


@contextmanager
def _nameless_main() -> Iterator[None]:
    """Keep a started process from importing the program's main module again, which multiprocessing otherwise does: 100
    MiB in each where that imports a command line, a page or a benchmark. What our processes serve lies elsewhere."""
    with _STARTING:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


def _let_allocations_grow() -> None:
    """Have torch map GPU memory page by page in the processes started from here on, unless the user has set it up.

    Trials of gigabytes differ in size, and fixed segments stay reserved for sizes that do not come again: 23 of 139 GiB
    once. torch reads the variable while it is imported, before anything of ours runs there.
    """
    if not any(os.environ.get(name) for name in ALLOCATOR_SETTINGS):
        os.environ[ALLOCATOR_SETTINGS[0]] = "expandable_segments:True"


def settle() -> None:
    """What a worker process does first."""
    # A group of its own, so that one kill ends the worker and whatever it started.
    os.setsid()
    # The coordinator decides what an interrupt means; a worker just ends when its pipe does.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process and its group once its parent is gone: it would not look at its pipe while a kernel runs. (The
    system's own signal for this comes when the thread ends that started the process.)"""
    while os.getppid() == parent:
        time.sleep(ORPHAN_POLL_S)
    os.killpg(0, signal.SIGKILL)


def questions(connection: Connection) -> Iterator[tuple[Case, object]]:
    """Inside the process: every question with its case, until the pipe closes."""
    held: Case | None = None
    while True:
        try:
            case, question = connection.recv()
        except (EOFError, ConnectionResetError):
            return
        held = held if case is None else case
        assert held is not None, "the first question comes with its case"
        yield held, question


def reply(connection: Connection, answer: object) -> bool:
    """Inside the process: answer a question. False where nobody listens any more: there is nothing left to do."""
    try:
        connection.send(answer)
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True
