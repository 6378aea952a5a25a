"""Measures what a search costs besides its device: python -m benchmarks.scale.measure [--candidates 2000 10000 20000]

Each size runs in a process of its own, by rules, on made-up verdicts (benchmarks.scale.synthetic). Written down:
seconds from start to finish, peak resident memory, sizes of the store and the checkpoints, and whether any program was
judged twice. Exit status 1 where one was.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.scale.synthetic import SyntheticPool
from graph.bench import machine_line
from graph.bench_records import write_output
from graph.build import checkpoints_path, open_store, store_path
from graph.session import capture_target, continue_run, record_run
from graph.settings import resolve_settings
from tools.target import parse_target

MODULE = Path(__file__).parent / "module.py"
POPULATION = 200
SIZES = (2_000, 10_000, 20_000)


@dataclass(frozen=True)
class Cost:
    """What one search took."""

    generations: int
    candidates: int
    programs_judged: int
    judged_twice: int
    seconds: float
    peak_mib: float
    store_mib: float
    checkpoints_mib: float

    @property
    def ms_each(self) -> float:
        """Milliseconds for one candidate."""
        return 1000 * self.seconds / max(self.candidates, 1)


def measure(candidates: int, home: Path) -> Cost:
    """Run one search of about so many candidates under `home`."""
    settings = resolve_settings(
        home=home,
        export_dir=home / "out",
        device="simulator",
        population=POPULATION,
        generations=candidates // POPULATION,
        patience=10_000,
        soak_trials=0,
        wall_s=36_000.0,
    )
    pool = SyntheticPool(settings.device_spec.name)
    captured = capture_target(parse_target(str(MODULE)), settings)
    with open_store(settings) as store:
        run = record_run(captured, settings, store)
        begun = time.perf_counter()
        continue_run(run, store, settings, lambda _: None, pool=pool)
        seconds = time.perf_counter() - begun
        made = store.counts(run.id).candidates
    return Cost(
        generations=settings.generations,
        candidates=made,
        programs_judged=len(pool.asked),
        judged_twice=sum(count > 1 for count in pool.asked.values()),
        seconds=round(seconds, 1),
        peak_mib=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        store_mib=size_mib(store_path(settings)),
        checkpoints_mib=size_mib(checkpoints_path(settings)),
    )


def size_mib(path: Path) -> float:
    """Of the file and its write-ahead log."""
    files = [path, path.with_name(f"{path.name}-wal")]
    return round(sum(file.stat().st_size for file in files if file.exists()) / 2**20, 1)


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--candidates", type=int, nargs="+", default=list(SIZES), help=f"multiples of {POPULATION}"
    )
    parser.add_argument("--out", type=Path, help="write the measurements here as JSON")
    given = parser.parse_args()
    costs = [_apart(count) for count in given.candidates]
    if given.out is not None:
        found = {"machine": machine_line(), "costs": [asdict(cost) for cost in costs]}
        write_output(given.out, json.dumps(found, indent=2) + "\n")
    return int(any(cost.judged_twice for cost in costs))


def _apart(candidates: int) -> Cost:
    """The cost of one search, in a process that does nothing else: its peak of memory is that search's."""
    fresh = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as home, ProcessPoolExecutor(1, mp_context=fresh) as child:
        cost = child.submit(measure, candidates, Path(home)).result()
    sys.stdout.write(
        f"{cost.generations} x {POPULATION}: {cost.candidates:,} candidates in {cost.seconds:.1f} s"
        f" ({cost.ms_each:.1f} ms each), {cost.peak_mib:,.0f} MiB, store {cost.store_mib:.1f} MiB,"
        f" checkpoints {cost.checkpoints_mib:.1f} MiB, {cost.judged_twice} programs judged twice\n"
    )
    sys.stdout.flush()
    return cost


if __name__ == "__main__":
    raise SystemExit(main())
