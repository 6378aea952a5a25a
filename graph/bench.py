"""Runs the loop over a folder of problems in the KernelBench form, resumably: `warpsmith bench`.

Here: one run a problem, and the report's files. Not here: finding the problems (graph.bench_problems), the results
file (graph.bench_records), what the report says (graph.bench_report).
One pool of workers serves all problems, and the next one is captured while the present one runs (graph.bench_ahead).
Invariants: a problem that fails never stops the others; after a kill nothing finished is repeated and the run that
was cut short is resumed. Problems share `home`: winners of earlier ones are recalled for later ones, and verdicts
already in the store are reused; give an empty home for a benchmark that starts from nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from graph.bench_ahead import CapturesAhead, Capturing, with_captures
from graph.bench_problems import BenchProblem, find_problems
from graph.bench_records import (
    BenchEntry,
    BenchResults,
    BenchStatus,
    ResultsFile,
    TimeUs,
    time_us,
    write_output,
)
from graph.bench_report import render_markdown, render_plot
from graph.build import open_pool, store_path
from graph.progress import Progress, StageStarted
from graph.results import versions
from graph.session import CAPTURING, continue_run, find_summary, record_run
from graph.settings import Settings
from graph.summary import run_candidates
from memory.errors import BadInput, WarpsmithError, WorkerLost
from memory.lock import RunLock
from memory.records import SCHEMA_VERSION, Evaluation, Run, RunStatus
from memory.store import Store
from tools.machine import gpus_present
from tools.pool import EvaluationPool
from tools.problem import Captured

_UNRELATED = frozenset(
    ("home", "export_dir", "archive_url", "pool", "ray_address", "ray_wait_s", "workers", "review")
)
"""Settings that say where and how fast, and change no outcome."""


@dataclass(frozen=True)
class ProblemStarted:
    """The benchmark turns to a problem."""

    name: str
    position: int
    """From 1."""
    total: int


@dataclass(frozen=True)
class ProblemFinished:
    """A problem has its entry; `reused` where an earlier benchmark made it."""

    entry: BenchEntry
    position: int
    total: int
    reused: bool


BenchListener = Callable[[Progress | ProblemStarted | ProblemFinished], None]


@dataclass(frozen=True)
class _Place:
    """Where the times are made."""

    device: str
    time_source: Literal["measured", "modelled"]
    machine: str


@dataclass(frozen=True)
class _Shared:
    """What all problems of a benchmark have in common."""

    settings: Settings
    store: Store
    file: ResultsFile
    place: _Place
    pool: EvaluationPool
    captures: CapturesAhead
    tell: BenchListener


@dataclass(frozen=True)
class _Job:
    """A problem with what every entry of it says."""

    problem: BenchProblem
    blank: BenchEntry
    known: BenchEntry | None
    """The entry that an earlier benchmark left for the same key."""
    needs_capture: Path | None
    """Its file, unless it is finished or a run of it was cut short."""


def run_bench(
    folder: Path,
    out: Path,
    settings: Settings,
    store: Store,
    tell: BenchListener,
    *,
    only: Sequence[str] = (),
    limit: int | None = None,
) -> BenchResults:
    """Optimize every problem under `folder` that the file `out` has no finished entry for.

    only: names, parts of names or patterns such as `level1/*`; limit: the first so many of those selected.
    Raises: BadInput for a folder without problems, or a results file that is none; ToolMissing and StoreError, which
    would strike every problem alike; StoreError too where another benchmark writes to the same file.
    """
    problems = find_problems(folder, only=only, limit=limit)
    unattended = settings.model_copy(update={"review": False})
    with RunLock(store_path(settings), lock_name(out)):
        file = ResultsFile(out, versions=versions(), settings=_identity(unattended))
        place = _place(unattended)
        with open_pool(unattended) as pool, CapturesAhead(unattended) as captures:
            shared = _Shared(unattended, store, file, place, pool, captures, tell)
            jobs = with_captures(_jobs(problems, shared), captures.begin)
            for position, (job, capturing) in enumerate(jobs, start=1):
                if job.known is not None and job.known.finished:
                    tell(ProblemFinished(job.known, position, len(problems), reused=True))
                    continue
                tell(ProblemStarted(job.problem.name, position, len(problems)))
                entry = _attempt(job, capturing, shared)
                entry = entry.model_copy(update={"message": _without_folder(entry.message, folder)})
                file.put(entry)
                tell(ProblemFinished(entry, position, len(problems), reused=False))
        return file.results


def lock_name(out: Path) -> str:
    """Under which name a results file is locked, so that two benchmarks do not overwrite each other's entries."""
    return f"{out.name}-{hashlib.sha256(str(out.resolve()).encode()).hexdigest()[:12]}"


def write_report(results: BenchResults, out: Path) -> tuple[Path, Path]:
    """Write the report beside the results file, as `.md` and `.svg`; returns both paths."""
    text, plot = out.with_suffix(".md"), out.with_suffix(".svg")
    write_output(plot, render_plot(results))
    write_output(text, render_markdown(results, plot=plot.name))
    return text, plot


def as_lines(tell: Callable[[Progress], None]) -> BenchListener:
    """A listener for a benchmark made of one that only knows a run's events."""

    def listen(event: Progress | ProblemStarted | ProblemFinished) -> None:
        if isinstance(event, ProblemStarted):
            tell(StageStarted(f"problem {event.position} of {event.total}: {event.name}"))
        elif isinstance(event, ProblemFinished):
            tell(StageStarted(f"problem {event.position} of {event.total}: {outcome_line(event)}"))
        else:
            tell(event)

    return listen


def outcome_line(event: ProblemFinished) -> str:
    """One line on a finished problem."""
    entry = event.entry
    line = f"{entry.name}: {entry.status.value.replace('_', ' ')}"
    if entry.speedup is not None:
        best = "" if entry.status is BenchStatus.IMPROVED else "best program "
        line += f", {best}{entry.speedup:.2f}× ({entry.time_source})"
    if entry.message:
        line += f": {entry.message}"
    return line + (" (from the results file)" if event.reused else f", {entry.seconds:.0f} s")


def machine_line() -> str:
    """GPUs with their driver, processor cores, torch and Python."""
    gpus = "; ".join(gpus_present()) or "no GPU"
    cores = f"{platform.system()} {platform.machine()} with {os.cpu_count()} cores"
    return f"{gpus}, {cores}, torch {versions()['torch']}, Python {platform.python_version()}"


def _place(settings: Settings) -> _Place:
    device = settings.device_spec
    source: Literal["measured", "modelled"] = "modelled" if device.kind == "simulator" else "measured"
    return _Place(device.name, source, machine_line())


def _jobs(problems: Sequence[BenchProblem], shared: _Shared) -> Iterator[_Job]:
    """Made one by one, when a capture may begin: an entry's key is of the text that was captured."""
    return (_job(problem, shared) for problem in problems)


def _job(problem: BenchProblem, shared: _Shared) -> _Job:
    place = shared.place
    key = _key(problem.path, shared.settings, place)
    blank = BenchEntry(
        name=problem.name,
        key=key,
        status=BenchStatus.RUNNING,
        time_source=place.time_source,
        device=place.device,
        machine=place.machine,
    )
    known = shared.file.find(problem.name, key)
    done = known is not None and known.finished
    needed = not done and _cut_short(known, shared.settings, shared.store) is None
    return _Job(problem, blank, known, problem.path if needed else None)


def _key(path: Path, settings: Settings, place: _Place) -> str:
    """Identity of an outcome: the file's bytes, the settings that matter, our version and the machine."""
    try:
        text = path.read_bytes()
    except OSError:
        text = b""
    ours = [versions()["warpsmith"], SCHEMA_VERSION, place.device, place.machine]
    parts = [hashlib.sha256(text).hexdigest(), _identity(settings), *ours]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _identity(settings: Settings) -> dict[str, str]:
    return {name: value for name, value in settings.as_text().items() if name not in _UNRELATED}


def _attempt(job: _Job, capturing: Capturing | None, shared: _Shared) -> BenchEntry:
    """One problem's entry, whatever becomes of it. Its seconds are those of its own capture and of its run."""
    begun: Run | Captured | WarpsmithError | None = _cut_short(job.known, shared.settings, shared.store)
    captured_s = 0.0
    if begun is None:
        shared.tell(StageStarted(CAPTURING))
        capture = (capturing or shared.captures.begin(job.problem.path)).result()
        begun, captured_s = capture.outcome, capture.seconds
    started = time.monotonic()
    entry = _outcome(job.blank, begun, shared)
    return entry.model_copy(update={"seconds": round(captured_s + time.monotonic() - started, 3)})


def _outcome(entry: BenchEntry, begun: Run | Captured | WarpsmithError, shared: _Shared) -> BenchEntry:
    """The entry of a run that was cut short or begins with what was captured, or of a capture that failed."""
    settings, store = shared.settings, shared.store
    try:
        if isinstance(begun, WarpsmithError):
            raise begun
        run = begun if isinstance(begun, Run) else record_run(begun, settings, store)
        entry = entry.model_copy(update={"run": run.id})
        shared.file.put(entry)
        if not run.status.ended:
            continue_run(run, store, settings, shared.tell, pool=shared.pool)
        return _judged(entry, store.run(run.id), store, settings)
    except BadInput as error:
        return _failed(entry, "input", error)
    except WorkerLost as error:
        return _failed(entry, "machine", error)


def _cut_short(known: BenchEntry | None, settings: Settings, store: Store) -> Run | None:
    """The run that an earlier benchmark began and did not report, if this store has it; exporting to today's folder."""
    if known is None or known.run is None:
        return None
    try:
        run = store.run(known.run)
    except BadInput:
        return None
    moved = {**run.settings, "export_dir": str(settings.export_dir.resolve())}
    return None if run.status is RunStatus.FAILED else run.model_copy(update={"settings": moved})


def _failed(entry: BenchEntry, fault: str, error: Exception) -> BenchEntry:
    changes = {"status": BenchStatus.FAILED, "fault": fault, "message": str(error)}
    return BenchEntry.model_validate({**entry.model_dump(), **changes})


def _judged(entry: BenchEntry, run: Run, store: Store, settings: Settings) -> BenchEntry:
    """The entry of a run that has ended, with the times of its best program, if any passed."""
    summary = find_summary(run, store, settings)
    status = BenchStatus.IMPROVED if run.status is RunStatus.IMPROVED else BenchStatus.NOT_IMPROVED
    ended = entry.model_copy(update={"status": status, "evaluations": summary.evaluations})
    evaluation = _best_evaluation(run, store)
    if evaluation is None or evaluation.timing is None:
        return ended
    timing, profile = evaluation.timing, evaluation.profile
    baselines: dict[str, TimeUs] = {baseline.name: time_us(baseline) for baseline in timing.baselines}
    return ended.model_copy(
        update={
            **baselines,
            "ours": time_us(timing),
            "time_source": timing.source,
            "device": timing.device,
            "floor_us": timing.floor_us,
            "speedup": timing.speedup,
            "floor_fraction": profile.floor_fraction if profile else None,
            "authored_share": profile.authored_share if profile else None,
        }
    )


def _best_evaluation(run: Run, store: Store) -> Evaluation | None:
    """Of the verified winner, or else of the fastest candidate that passed."""
    rows = run_candidates(run, store)
    passed = [(r.candidate.id, r.evaluation) for r in rows if r.evaluation and r.evaluation.timing]
    winner = [evaluation for name, evaluation in passed if name == run.best_candidate]
    others = sorted((e for _, e in passed), key=lambda e: e.timing.median_us if e.timing else 0.0)
    return next(iter((*winner, *others)), None)


def _without_folder(message: str | None, folder: Path) -> str | None:
    """A message without the machine's own paths, so that results can be published."""
    return message.replace(f"{folder.resolve()}/", "").replace(f"{folder}/", "") if message else None
