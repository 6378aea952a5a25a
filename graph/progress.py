"""What the loop tells an onlooker while it works; sent through langgraph's custom stream, never stored."""

from __future__ import annotations

from dataclasses import dataclass

from memory.records import BaselineTime, Candidate, Evaluation


@dataclass(frozen=True)
class StageStarted:
    """A longer piece of work begins."""

    text: str


@dataclass(frozen=True)
class BaselineReady:
    """The case is prepared."""

    baselines: tuple[BaselineTime, ...]
    floor_us: float
    trials: int
    recalled: int
    """Innovations of the archive that resemble the problem."""


@dataclass(frozen=True)
class GenerationPlanned:
    """A generation begins."""

    generation: int
    proposals: int


@dataclass(frozen=True)
class CandidateJudged:
    """One verdict."""

    candidate: Candidate
    evaluation: Evaluation
    reused: bool
    """The store already had this program's verdict."""


@dataclass(frozen=True)
class GenerationClosed:
    """A generation's outcome."""

    generation: int
    passed: int
    failed: int
    best_us: float | None
    lessons: tuple[str, ...]
    stop: str


@dataclass(frozen=True)
class SoakProgress:
    """Random trials the winner has passed so far."""

    candidate_id: str
    done: int
    total: int


Progress = (
    StageStarted | BaselineReady | GenerationPlanned | CandidateJudged | GenerationClosed | SoakProgress
)
