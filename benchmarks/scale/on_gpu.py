"""Measures a whole search on a GPU: python -m benchmarks.scale.on_gpu --home DIR [--candidates 20000] [--for-s 540]

A small problem, 200 candidates a generation, by rules, with every program really compiled, judged and timed. The
search is laid down after --for-s seconds and taken up again by the same command, so it fits a machine that is lent for
minutes; each lap is written down in the home. The last lap ends with the winner's soak and prints the whole.

Seconds on the device are those that the verdicts took there: sanitizing, correctness and timing. What is left of the
wall time is overhead: planning, storing, and waiting for a compiler.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.scale.measure import POPULATION, size_mib
from benchmarks.scale.memory import PeakMemory
from benchmarks.scale.phases import Phases
from graph.bench import machine_line
from graph.bench_records import write_output
from graph.build import checkpoints_path, open_store, store_path
from graph.progress import GenerationClosed, Progress
from graph.session import capture_target, continue_run, record_run
from graph.settings import Settings, resolve_settings
from memory.records import Run, Stage
from memory.store import Store
from tools.target import parse_target

MODULE = Path(__file__).parent / "small.py"


class LaidDown(Exception):
    """The lap's time is over."""


@dataclass(frozen=True)
class Lap:
    """One sitting."""

    seconds: float
    """From the first worker's start to the last verdict."""
    generations: int
    candidates: int
    peak_mib: float
    """Memory of all processes together, sampled every five seconds; what they share is counted once."""
    by_process: list[str] = field(default_factory=list)
    """Who held it, the largest first."""
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds of the main parts of all generations: see `benchmarks.scale.phases`."""


@dataclass(frozen=True)
class Whole:
    """The search so far."""

    laps: list[Lap]
    seconds: float
    generations: int
    candidates: int
    programs: int
    by_status: dict[str, int]
    device_s: dict[str, float]
    """Seconds of all verdicts by stage."""
    overhead_share: float
    """Of the wall time, outside of compiling and of the device's stages; starting the workers is in it."""
    peak_mib: float
    store_mib: float
    checkpoints_mib: float
    best_us: float | None
    speedup: float | None
    ended: bool


def lap(home: Path, candidates: int, limit_s: float, device: str) -> Whole:
    """Search until it ends or `limit_s` seconds are over, from where the last lap left it."""
    settings = resolve_settings(
        home=home, export_dir=home / "out", device=device, population=POPULATION, examine="none",
        generations=candidates // POPULATION, patience=10_000, floor_target=1.0, soak_trials=100, wall_s=36_000.0,
    )  # fmt: skip
    with open_store(settings) as store:
        run = store.latest_run() or record_run(
            capture_target(parse_target(str(MODULE)), settings), settings, store
        )
        before = store.counts(run.id).candidates
        closed: list[GenerationClosed] = []
        begun = time.perf_counter()
        phases = Phases()

        def tell(event: Progress) -> None:
            phases.note(event)
            if isinstance(event, GenerationClosed):
                closed.append(event)
                sys.stdout.write(
                    f"generation {event.generation}: {event.passed} passed, {event.failed} failed, best "
                    f"{event.best_us:.2f} µs, {time.perf_counter() - begun:.0f} s\n"
                )
                sys.stdout.flush()
                if time.perf_counter() - begun > limit_s:
                    raise LaidDown

        ended = True
        with PeakMemory() as memory:
            try:
                continue_run(run, store, settings, tell)
            except LaidDown:
                ended = False
        seconds = time.perf_counter() - begun
        made = store.counts(run.id).candidates - before
        here = Lap(round(seconds, 1), len(closed), made, memory.peak_mib, memory.by_process, phases.seconds)
        return _whole(_kept(home / "laps.json", here), run, store, settings, ended=ended)


def _kept(path: Path, newest: Lap) -> list[Lap]:
    laps = [Lap(**one) for one in json.loads(path.read_text())] if path.exists() else []
    laps.append(newest)
    path.write_text(json.dumps([asdict(one) for one in laps]))
    return laps


def _whole(laps: list[Lap], run: Run, store: Store, settings: Settings, *, ended: bool) -> Whole:
    rows = store.evaluated(run.id)
    verdicts = {row.evaluation.program_hash: row.evaluation for row in rows if row.evaluation}
    stages: Counter[str] = Counter()
    for verdict in verdicts.values():
        stages.update(verdict.seconds)
    at_work = stages[Stage.COMPILE.value] + sum(verdict.device_s for verdict in verdicts.values())
    seconds = sum(one.seconds for one in laps)
    best = store.best_candidate(run.id)
    timing = best.evaluation.timing if best and best.evaluation else None
    return Whole(
        laps=laps,
        seconds=round(seconds, 1),
        generations=sum(one.generations for one in laps),
        candidates=len(rows),
        programs=len(verdicts),
        by_status=dict(Counter(verdict.status.value for verdict in verdicts.values())),
        device_s={stage: round(total, 1) for stage, total in stages.items()},
        overhead_share=round(1 - at_work / seconds, 3),
        peak_mib=max(one.peak_mib for one in laps),
        store_mib=size_mib(store_path(settings)),
        checkpoints_mib=size_mib(checkpoints_path(settings)),
        best_us=timing.median_us if timing else None,
        speedup=timing.speedup if timing else None,
        ended=ended,
    )


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--home", type=Path, required=True, help="where the search and its laps are kept")
    parser.add_argument("--candidates", type=int, default=20_000, help=f"a multiple of {POPULATION}")
    parser.add_argument("--for-s", type=float, default=36_000.0, help="seconds of this lap")
    parser.add_argument("--device", default="cuda", help="cuda, or simulator to try it without a GPU")
    parser.add_argument("--out", type=Path, help="write the measurements here as JSON")
    given = parser.parse_args()
    given.home.mkdir(parents=True, exist_ok=True)
    whole = lap(given.home, given.candidates, given.for_s, given.device)
    text = json.dumps({"machine": machine_line(), **asdict(whole)}, indent=2) + "\n"
    sys.stdout.write(text)
    if given.out is not None:
        write_output(given.out, text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
