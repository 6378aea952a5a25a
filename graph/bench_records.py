"""What a benchmark leaves: one entry a problem, in a JSON file that is whole after every problem.

Not here: running (graph.bench), statistics and their rendering (graph.bench_report).
Invariants: the file is replaced, never written in place; an entry says whether its times are measured or modelled
and on which machine they were made; a finished entry counts only for the file, settings and versions of its key.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from graph.folders import write_whole
from memory.errors import BadInput
from memory.records import BaselineTime, Record, Timing


class BenchStatus(StrEnum):
    """How a problem of a benchmark stands."""

    RUNNING = "running"
    IMPROVED = "improved"
    NOT_IMPROVED = "not_improved"
    FAILED = "failed"


class TimeUs(Record):
    """A median with its confidence interval, in µs."""

    median_us: Annotated[float, Field(gt=0)]
    low_us: Annotated[float, Field(gt=0)]
    high_us: Annotated[float, Field(gt=0)]


class BenchEntry(Record):
    """One problem's outcome. Times are those of the winner, or else of the fastest program that passed."""

    name: str
    """Path under the benchmark's folder, without `.py`."""
    key: str
    """Hash of the file's text, the settings, the versions and the machine."""
    status: BenchStatus
    time_source: Literal["measured", "modelled"]
    device: str
    machine: str
    message: str | None = None
    """Why it failed."""
    fault: Literal["input", "machine"] | None = None
    """Whose failure it was; the machine's is tried again by the next benchmark."""
    run: str | None = None
    """The run's id in the store."""
    eager: TimeUs | None = None
    compile: TimeUs | None = None
    """torch.compile with its defaults, where it was timed."""
    compile_best: TimeUs | None = None
    """The best of torch.compile's modes, where they were timed."""
    ours: TimeUs | None = None
    floor_us: float | None = None
    speedup: float | None = None
    """Eager's median over ours, as it came out: below 1 is a loss."""
    floor_fraction: float | None = None
    """Floor over ours, 0 to 1."""
    authored_share: float | None = None
    """Share of device time in the program's own kernels, 0 to 1; the rest is library calls."""
    evaluations: int = 0
    seconds: float = 0.0
    """Wall seconds of its capture, which may have been made while another problem ran, and of its run, in the process
    that finished it."""

    @property
    def finished(self) -> bool:
        """True where the next benchmark need not look at it again."""
        return self.status is not BenchStatus.RUNNING and self.fault != "machine"


class BenchResults(Record):
    """A results file."""

    bench_schema: Literal[1] = 1
    """Raised whenever the meaning of the results file changes."""
    versions: dict[str, str] = {}
    """Of the benchmark that wrote last."""
    settings: dict[str, str] = {}
    """Of the benchmark that wrote last; without paths."""
    entries: tuple[BenchEntry, ...] = ()


def time_us(time: BaselineTime | Timing) -> TimeUs:
    """The interval of a baseline's or a candidate's time."""
    return TimeUs(median_us=time.median_us, low_us=time.low_us, high_us=time.high_us)


class ResultsFile:
    """The results file of one benchmark; kept whole on disk at every moment."""

    def __init__(self, path: Path, *, versions: dict[str, str], settings: dict[str, str]) -> None:
        """Read what an earlier benchmark left. Raises BadInput where the file is something else."""
        self._path = path
        self._entries = {entry.name: entry for entry in read_results(path).entries} if path.exists() else {}
        self._versions, self._settings = versions, settings

    @property
    def results(self) -> BenchResults:
        """Everything in the file."""
        return BenchResults(
            versions=self._versions, settings=self._settings, entries=tuple(self._entries.values())
        )

    def find(self, name: str, key: str) -> BenchEntry | None:
        """The entry of a problem, if it was made for the same key."""
        entry = self._entries.get(name)
        return entry if entry is not None and entry.key == key else None

    def put(self, entry: BenchEntry) -> None:
        """Add or replace one entry and write the file. Raises BadInput where it cannot be written."""
        self._entries[entry.name] = entry
        write_output(self._path, self.results.model_dump_json(indent=1))


def read_results(path: Path) -> BenchResults:
    """A results file. Raises BadInput naming the file and the first field that is wrong."""
    try:
        return BenchResults.model_validate_json(path.read_bytes())
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise BadInput(
            f"{path} is not a results file of this version ({place}: {first['msg']}); name another with --out"
        ) from error


def write_output(path: Path, text: str) -> None:
    """Write a benchmark's file whole or not at all. Raises BadInput where it cannot be written."""
    try:
        write_whole(path, text)
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}; name another with --out") from error
