"""The graph's state: ids, counters and small records. Programs, verdicts and traces live in the store."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, TypedDict

from langgraph.types import Overwrite

from agents.schemas import Proposal, Recalled


class NodeName(StrEnum):
    """Nodes of the graph."""

    BASELINE = "baseline"
    PLAN = "plan"
    PROPOSE = "propose"
    EVALUATE = "evaluate"
    CRITIQUE = "critique"
    SELECT = "select"
    VERIFY = "verify"
    REVIEW = "review"
    ARCHIVE = "archive"
    EXPORT = "export"
    FINISH = "finish"


def merge_ids(old: list[str], new: list[str]) -> list[str]:
    """Union in order of id: associative and idempotent, so a repeated branch changes nothing."""
    return sorted({*old, *new})


@dataclass(frozen=True)
class RunState:
    """What a checkpoint holds."""

    run_id: str = ""
    generation: int = 0
    proposals: list[Proposal] = field(default_factory=list)
    """Of the current generation."""
    evaluated: Annotated[list[str], merge_ids] = field(default_factory=list)
    """Candidate ids judged in the current generation."""
    population: list[str] = field(default_factory=list)
    """Surviving candidate ids of all islands, fittest first."""
    islands: list[list[str]] = field(default_factory=list)
    """Candidate ids on each island, fittest first; as the last good generation left them."""
    quiet: list[int] = field(default_factory=list)
    """For each island, generations in a row without a gain."""
    elites: list[str] = field(default_factory=list)
    """Candidate ids, the fittest of every cell of the grid."""
    lessons: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    """Of the operator, as they were when the generation was planned: a prompt must not change when a run resumes."""
    neighbours: list[Recalled] = field(default_factory=list)
    """What in the archive resembled the problem when the run began; others may add to the archive meanwhile."""
    first_evaluation: int = 0
    """Number of the newest verdict in the store when the run began."""
    stagnation: int = 0
    gentle: bool = False
    """The next generation changes little: the last one failed too often."""
    good: bool = False
    """There was a generation in which little failed."""
    fallen_back: bool = False
    """Too much failed twice in a row: the result is the module as PyTorch runs it."""
    spent_s: float = 0.0
    stop: str = ""
    """Why the search ended; empty while it goes on."""
    refuted: list[str] = field(default_factory=list)
    """Candidates that failed the soak or a person's review."""
    preferred: str = ""
    """An earlier winner to which a person rolls back; verified before any other."""
    winner: str = ""
    trials: int = 0
    """Random trials the winner passed in its soak."""
    full_shape_trials: int = 0
    """The winner was also verified at the problem's own shapes."""
    export_path: str = ""


class Update(TypedDict, total=False):
    """What a node may change; mypy catches a misspelt key, which langgraph would drop silently."""

    generation: int
    proposals: list[Proposal]
    evaluated: list[str] | Overwrite
    population: list[str]
    islands: list[list[str]]
    quiet: list[int]
    elites: list[str]
    lessons: list[str]
    hints: list[str]
    neighbours: list[Recalled]
    first_evaluation: int
    stagnation: int
    gentle: bool
    good: bool
    fallen_back: bool
    spent_s: float
    stop: str
    refuted: list[str]
    preferred: str
    winner: str
    trials: int
    full_shape_trials: int
    export_path: str


class ProposeJob(TypedDict):
    """Payload of one fan-out branch: write programs, one after another."""

    proposals: list[Proposal]
    lessons: list[str]
    hints: list[str]
    neighbours: list[Recalled]


class EvaluateJob(TypedDict):
    """Payload of one fan-out branch: judge programs, with repairs, one after another."""

    job: ProposeJob
    candidate_ids: list[str]
    """One for each proposal; empty where no program was written."""
