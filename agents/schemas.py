"""What agents say to each other: small records, and how they call a candidate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Protocol

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


def short_id(candidate_id: str) -> str:
    """The part of a candidate's id that is the same whenever the run is repeated: `001-002` or `001-002-r1`."""
    parts = candidate_id.split("-")
    tail = 3 if parts[-1].startswith("r") and len(parts) > 2 else 2
    return "-".join(parts[-tail:])


def proposal_of(candidate_id: str) -> str:
    """The id of a candidate without its repair: the same for a proposal's program and for the mended ones."""
    return _REPAIRED.sub("", candidate_id)


_REPAIRED = re.compile(r"-r\d+$")


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
    WRITE = "write"
    """A new program by a model, from the problem alone."""
    IMPROVE = "improve"
    """One parent, its bottleneck relieved by a model."""
    COMBINE = "combine"
    """A crossover by a model: what is best in two or three parents of different sources."""
    PORT = "port"
    """An innovation of another architecture, rewritten by a model for this one."""
    SIMPLIFY = "simplify"
    """One parent with less code and no more time, by a model: what is simple is easier to improve and to trust."""

    @property
    def by_model(self) -> bool:
        """True where the move needs a language model."""
        return self in (Move.WRITE, Move.IMPROVE, Move.COMBINE, Move.PORT, Move.SIMPLIFY)


REPAIR = "repair"
"""How a mended program was made: an origin's move that no planner proposes."""


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
    model: str | None = None
    """Name of the model that writes the program; None for a move by rules."""
    island: int = 0
    """Where its candidate will live."""


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
    chosen: bool = False
    """The run was told to begin with it."""


class Recalled(Record):
    """An innovation found similar when a run began."""

    id: str
    similarity: float
    chosen: bool = False
    """The run was told to begin with it."""


@dataclass(frozen=True)
class Failure:
    """A candidate that failed, in a few words."""

    candidate_id: str
    idea: str
    status: Status
    why: str


@dataclass(frozen=True)
class Notes:
    """What a run has learnt so far and what its operator says; part of every prompt."""

    lessons: tuple[str, ...] = ()
    """Of the critic, oldest first."""
    hints: tuple[str, ...] = ()
    """Of the operator, oldest first."""
    failures: tuple[Failure, ...] = ()
    """Of earlier generations, oldest first."""


@dataclass(frozen=True)
class Scene:
    """What every prompt begins with: the problem on its GPU, and when in the run it is."""

    problem: Problem
    twin: Problem | None
    """The problem at reduced shapes, where it has one; programs must bind to both."""
    gpu: GpuSpec
    floor_us: float
    generation: int
    notes: Notes
    relative_tolerance: float = 1e-6
    eager_factor: float = 2.0
    """An error passes up to the tolerance, or this factor times eager PyTorch's own; see tools.policy."""


@dataclass(frozen=True)
class ArmOutcome:
    """What came of one proposal that a model worked on."""

    model: str
    move: Move
    gain: float
    """log(best time before / its time) where it was verified and faster, else 0."""
    cost: float
    """USD, or, where no price is known, millions of tokens."""


class Breeding(Protocol):
    """Who may breed. Which parents is evolution's choice; what is made of them is the planner's."""

    @property
    def islands(self) -> int:
        """How many there are."""
        ...

    def restarts(self, island: int) -> bool:
        """True where nobody on the island can be varied: it begins anew, from the archive and the recipes."""
        ...

    def parent(self, island: int, rng: Random, *, gentle: bool) -> Member | None:
        """A parent for a child of this island; from nowhere else where `gentle`. None where it restarts."""
        ...

    def mate(self, first: Member, island: int, rng: Random) -> Member | None:
        """Another member of the island with the same source, to cross with; None where there is none."""
        ...


@dataclass(frozen=True)
class Briefing:
    """What the planner knows when a generation begins."""

    scene: Scene
    slots: int
    """Proposals wanted."""
    population: tuple[Member, ...]
    """Of all islands, fittest first."""
    breeding: Breeding
    """Who of it may breed, island by island."""
    tried: frozenset[str]
    """Program hashes of the run so far."""
    neighbours: tuple[Neighbour, ...]
    gentle: bool
    """Too much failed in the last generation: small steps only, and by rules."""
    outcomes: tuple[ArmOutcome, ...] = ()
    """Of the models' earlier proposals, oldest first."""


@dataclass(frozen=True)
class CoderTask:
    """What the coder needs to turn one proposal into a program."""

    proposal: Proposal
    scene: Scene
    parents: tuple[Member, ...]
    innovation: Innovation | None
    neighbours: tuple[Neighbour, ...] = ()
    """For a model: examples to learn from."""
    known: Mapping[str, str] = field(default_factory=dict)
    """Fingerprint -> candidate of every program of earlier generations; see agents.novelty."""
    candidate_id: str | None = None
    """Whose program it will be, for the journal."""


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
    by_model: bool = False


class Critique(Record):
    """What the critic makes of a generation."""

    lessons: tuple[str, ...]
    """What was learnt; what to stop trying."""
    suspicious: tuple[str, ...] = ()
    """Candidates whose win deserves a second look."""
    stop: bool = False
    reason: str = ""
    """Why to stop, where `stop` is set."""
    by_model: bool = False
    """A model had its part in it; what it said is in the journal."""
