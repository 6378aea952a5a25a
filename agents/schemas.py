"""What agents say to each other: small records, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memory.records import (
    Candidate,
    Diagnostic,
    Evaluation,
    Innovation,
    Origin,
    Problem,
    Program,
    Record,
    Status,
)
from tools.gpus import GpuSpec


class Move(StrEnum):
    """How a proposal makes a program."""

    SEED = "seed"
    """A recipe's blueprint."""
    RECALL = "recall"
    """An innovation of the archive, bound to this problem."""
    TUNE = "tune"
    """A parent at another point of its tunables."""
    CROSS = "cross"
    """Two parents of one source, their tunables mixed."""
    REPLAY = "replay"
    """A parent whose launches cost more than its kernels, replayed as a CUDA graph."""


class Proposal(Record):
    """One thing to try: one bottleneck, one idea."""

    id: str
    generation: int
    move: Move
    idea: str
    """One sentence."""
    bottleneck: str
    """What the idea is meant to relieve."""
    parents: tuple[str, ...] = ()
    """Candidate ids."""
    blueprint: str | None = None
    """Name of the recipe blueprint of a SEED."""
    innovation: str | None = None
    """Archive id of a RECALL."""
    values: dict[str, int] = {}
    """Tunables that differ from the blueprint's or the first parent's."""


@dataclass(frozen=True)
class Member:
    """A candidate of the population with its program and verdict."""

    candidate: Candidate
    program: Program
    evaluation: Evaluation

    @property
    def passed(self) -> bool:
        """True where the verdict is PASSED."""
        return self.evaluation.status is Status.PASSED


@dataclass(frozen=True)
class Neighbour:
    """An innovation of the archive that resembles the problem."""

    id: str
    innovation: Innovation
    similarity: float
    """0 to 1."""


@dataclass(frozen=True)
class Briefing:
    """What the planner knows when a generation begins."""

    problem: Problem
    twin: Problem | None
    """The problem at reduced shapes, where it has one; programs must bind to both."""
    gpu: GpuSpec
    floor_us: float
    generation: int
    slots: int
    """Proposals wanted."""
    population: tuple[Member, ...]
    """Best first."""
    tried: frozenset[str]
    """Program hashes of the run so far."""
    neighbours: tuple[Neighbour, ...]
    lessons: tuple[str, ...]
    gentle: bool
    """Too much failed in the last generation: change less."""


@dataclass(frozen=True)
class CoderTask:
    """What the coder needs to turn one proposal into a program."""

    proposal: Proposal
    problem: Problem
    twin: Problem | None
    gpu: GpuSpec
    parents: tuple[Member, ...]
    innovation: Innovation | None


@dataclass(frozen=True)
class Draft:
    """A program as its coder hands it over."""

    program: Program
    origin: Origin
    idea: str
    techniques: tuple[str, ...]


@dataclass(frozen=True)
class RepairRequest:
    """What the compiler agent asks the coder to mend."""

    attempt: int
    """1 for the first repair."""
    status: Status
    diagnostics: tuple[Diagnostic, ...]
    instruction: str


@dataclass(frozen=True)
class Reading:
    """What the profiler makes of a candidate's profile."""

    bottleneck: str
    explanation: str
    advice: str


class Critique(Record):
    """What the critic makes of a generation."""

    lessons: tuple[str, ...]
    """What was learnt; what to stop trying."""
    suspicious: tuple[str, ...] = ()
    """Candidates whose win deserves a second look."""
    stop: bool = False
    reason: str = ""
    """Why to stop, where `stop` is set."""
