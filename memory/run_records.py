"""Innovation and Run: what the archive keeps, and one optimization."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Literal

from memory.program_records import Program
from memory.record import DType, Record


class Provenance(Record):
    """Where an innovation comes from."""

    run_id: str
    device: str
    time_source: Literal["measured", "modelled"]
    created: str
    """ISO 8601, UTC."""
    versions: dict[str, str]
    trials: int
    """Random trials it passed."""
    driver: str = ""
    """The GPU and its driver's version as the driver reports them; empty on a simulator."""
    origin: Literal["run", "import"] = "run"
    """`import`: figures that another archive gave and nobody has checked here."""
    attempts: dict[str, str] = {}
    """What measuring it again said where it failed: place -> verdict and date."""


class Innovation(Record):
    """A verified winner in the archive."""

    LABELS: ClassVar[frozenset[str]] = frozenset(
        {"idea", "provenance", "speedup", "floor_fraction", "best_us"}
    )

    problem_hash: str
    problem_name: str
    signature: str
    """The problem in words: operations, shapes, dtypes."""
    operations: tuple[str, ...]
    dtype: DType
    arch: str
    program: Program
    idea: str
    techniques: tuple[str, ...]
    best_us: float
    speedup: float
    floor_fraction: float
    verification: Literal["trials", "soak", "refuted"]
    """`refuted`: it passed once and failed when it was measured again; its figures are history."""
    provenance: Provenance


class RunStatus(StrEnum):
    """State of a run."""

    RUNNING = "running"
    PAUSED = "paused"
    """A process stopped where the disk was full; the next one goes on."""
    IMPROVED = "improved"
    NOT_IMPROVED = "not_improved"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        """True where nothing is left to go on with."""
        return self not in (RunStatus.RUNNING, RunStatus.PAUSED)

    @property
    def words(self) -> str:
        """As people read it."""
        return self.value.replace("_", " ")


class Run(Record):
    """One optimization of one problem under one settings object and one budget."""

    id: str
    problem_hash: str
    device: str
    settings: dict[str, str]
    """Resolved settings, secrets masked."""
    seed: int
    created: str
    status: RunStatus = RunStatus.RUNNING
    best_candidate: str | None = None
