"""Searches in processes of their own that die at an exact point: a node, a statement of SQL, a call of the archive.

The device answers at once with made-up verdicts (benchmarks.scale.synthetic); everything around it is real. A forked
process takes over what a server has imported, so that a search starts within a fraction of a second.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import shutil
import signal
import sqlite3
import sys
import threading
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from types import BuiltinFunctionType, FrameType
from typing import Any, Literal

from benchmarks.scale.synthetic import SyntheticPool
from graph import nodes
from graph.build import checkpoints_path, open_archive, open_store, store_path
from graph.session import continue_run, resumed_settings
from graph.settings import Settings, resolve_settings
from graph.state import NodeName
from memory.errors import WarpsmithError
from memory.records import Evaluation, Run
from tools.problem import Captured
from tools.worker import EvaluationJob

RUN = "module-20261203-000000-0000"
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["tests.graph.searching", "agents.llm", "chromadb.api.rust", "pytest"])

Kind = Literal["sql", "archive", "enter", "leave", "ask"]


@dataclass(frozen=True)
class Point:
    """A moment of a search: the n-th time that something begins (or, for `leave`, ends)."""

    kind: Kind
    nth: int = 1
    node: str = ""
    after: bool = False
    """Of a call: when it has returned, and not before it."""

    def __str__(self) -> str:
        return f"{'after ' if self.after else ''}{self.kind} {self.node}{self.nth}"


class Clock:
    """Counts what a process does and kills it at a point. A profile function, so that nothing has to be replaced."""

    def __init__(self, point: Point | None) -> None:
        self.counts: Counter[str] = Counter()
        self._point = point
        self._lock = threading.Lock()
        self._nodes = {getattr(nodes, name.value).__code__: name.value for name in NodeName}

    def start(self) -> None:
        threading.setprofile(self)
        sys.setprofile(self)

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if event in ("call", "return"):
            if (node := self._nodes.get(frame.f_code)) is not None:
                self.tick("enter" if event == "call" else "leave", node)
        elif event != "c_exception" and (kind := _kind(arg)) is not None:
            self.tick(kind, after=event == "c_return")

    def tick(self, kind: Kind, node: str = "", *, after: bool = False) -> None:
        with self._lock:
            key = f"{'after ' if after else ''}{kind} {node}".strip()
            self.counts[key] += 1
            wanted = self._point
            if wanted == Point(kind, self.counts[key], node, after):
                os.kill(os.getpid(), signal.SIGKILL)


def _kind(called: BuiltinFunctionType) -> Kind | None:
    owner = getattr(called, "__self__", None)
    if isinstance(owner, sqlite3.Connection | sqlite3.Cursor):
        return "sql" if called.__name__ in ("execute", "executemany", "commit") else None
    return "archive" if type(owner).__name__ == "Bindings" else None


class LoggedPool(SyntheticPool):
    """Writes down what it is asked before it answers, so that a kill does not hide it."""

    def __init__(self, device: str, log: Path, clock: Clock) -> None:
        super().__init__(device)
        self._log, self._clock = log, clock

    def evaluate(self, job: EvaluationJob) -> Evaluation | None:
        if job.kind == "evaluate":
            with self._log.open("a") as file:
                file.write(job.program.content_hash() + "\n")
        self._clock.tick("ask")
        verdict = super().evaluate(job)
        self._clock.tick("ask", after=True)
        return verdict


@dataclass(frozen=True)
class Order:
    """What a process is to do with a home."""

    home: Path
    point: Point | None = None
    answer: str = ""
    """approved or rejected, for a run that waits for review."""
    environment: tuple[tuple[str, str], ...] = ()
    count: bool = False
    """Count what happens; it doubles the time."""
    file_bytes: int | None = None
    """Limit on the size of any file."""
    notes: Path | None = None
    """Where the process leaves its notes; None is the home."""

    @property
    def desk(self) -> Path:
        return self.notes or self.home


def work(order: Order) -> None:
    """Entry of a process: go on with the run. Its counts, and what it ended with, are left among its notes."""
    os.environ.update(order.environment)
    os.chdir(order.home)
    clock = Clock(order.point)
    if order.file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order.file_bytes, resource.RLIM_INFINITY))
    ending = {"error": "", "code": 0}
    if order.point is not None or order.count:
        clock.start()
    try:
        _continue(order, clock)
    except WarpsmithError as error:
        ending = {"error": str(error), "code": error.exit_code}
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    (order.desk / "ended.json").write_text(json.dumps({**ending, "counts": clock.counts}))


def _continue(order: Order, clock: Clock) -> None:
    settings = resolve_settings(home=order.home)
    with open_store(settings) as store:
        run = store.run(RUN)
        kept = resumed_settings(run, settings)
        pool = LoggedPool(run.device, order.desk / "asked", clock)
        answer = {"verdict": order.answer, "note": "so be it"} if order.answer else None
        continue_run(run, store, kept, lambda _: None, answer=answer, pool=pool)


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    killed: bool
    code: int = 0
    error: str = ""
    counts: dict[str, int] = field(default_factory=dict)


def begin(order: Order) -> ForkServerProcess:
    """Start a process on a home."""
    process = SERVER.Process(target=work, args=(order,))
    process.start()
    return process


def ended(process: ForkServerProcess, order: Order) -> Ended:
    """Wait for it. Fails where it neither ended nor was killed."""
    process.join(120)
    assert process.exitcode in (0, -signal.SIGKILL), process.exitcode
    if process.exitcode != 0:
        return Ended(killed=True)
    return Ended(False, **json.loads((order.desk / "ended.json").read_text()))


def search(order: Order) -> Ended:
    """Go on with a home's run until the process ends."""
    return ended(begin(order), order)


def settings_of(home: Path, **changes: object) -> Settings:
    """Settings of a small search; the archive has nothing in it when it begins."""
    wanted: dict[str, object] = {
        "home": home, "export_dir": home / "out", "device": "simulator", "population": 4, "generations": 3,
        "patience": 99, "soak_trials": 0, "wall_s": 3600.0,
    }  # fmt: skip
    return resolve_settings(**wanted | changes)


def prepare(home: Path, captured: Captured, trials: Path | None, **changes: object) -> Path:
    """A home with a run that nobody has worked on; `trials`: those that another home's run has drawn."""
    settings = settings_of(home, **changes)
    with open_store(settings) as store:
        problem_hash = store.put_pair(captured.problem, captured.reduced)
        run = Run(
            id=RUN, problem_hash=problem_hash, device=settings.device_spec.name, settings=settings.as_text(),
            seed=settings.seed, created=datetime.now(UTC).isoformat(),
        )  # fmt: skip
        store.put_run(run)
    if trials is not None:
        shutil.copytree(trials, trials_of(home))
    return home


def trials_of(home: Path) -> Path:
    """Where a home's run keeps its trials."""
    return home / "runs" / RUN / "trials"


@dataclass(frozen=True)
class Outcome:
    """Everything that a search has left, without what may differ from one to the next: times of day."""

    run: dict[str, object]
    candidates: list[dict[str, object]]
    verdicts: dict[str, str]
    """Program hash -> body."""
    events: set[str]
    """Ids."""
    reviews: list[str]
    archived: list[str]
    files: set[str]
    """In the run's folder and the export's."""


def outcome(home: Path) -> Outcome:
    """What is there. Fails where any of the databases is damaged."""
    settings = settings_of(home)
    for path in (store_path(settings), checkpoints_path(settings), home / "archive" / "chroma.sqlite3"):
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], path
    with open_store(settings) as store, open_archive(settings) as archive:
        run, reviewed = store.run(RUN), store.candidates(RUN)
        innovations = [(name, archive.get(name)) for name in archive.all_ids()]
        return Outcome(
            run={"status": run.status, "best": run.best_candidate},
            candidates=sorted((c.model_dump() for c in reviewed), key=lambda c: str(c["id"])),
            verdicts=verdicts(home),
            events={e.id for e in store.events(RUN)},
            reviews=[f"{r.verdict} {r.note}" for c in reviewed for r in store.reviews(c.id)],
            archived=[f"{name} {innovation.idea}" for name, innovation in innovations if innovation],
            files={
                str(path.relative_to(home))
                for folder in (home / "runs", home / "out")
                for path in folder.rglob("*")
                if path.is_file() and trials_of(home) not in path.parents
            },
        )


def verdicts(home: Path) -> dict[str, str]:
    """Program hash -> the verdict's body, read behind the search's back."""
    with closing(sqlite3.connect(home / "store.db", timeout=30)) as connection:
        return dict(connection.execute("SELECT program_hash, body FROM evaluations").fetchall())


def asked(notes: Path) -> list[str]:
    """Programs that the device was asked about, in order."""
    log = notes / "asked"
    return log.read_text().split() if log.exists() else []
