"""What happened in a run besides candidates: agents' events, people's hints and reviews, and the sums over them.

Not here: the store that keeps them. Invariant: an event says who decided (rules, a model or a person) and, for a
model, what was asked, answered and paid.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from memory.records import Candidate, Evaluation, Record, Status

Count = Annotated[int, Field(ge=0)]


class AgentEvent(Record):
    """One decision of an agent."""

    id: str
    """Chosen by the caller; the same decision keeps its id when a run resumes."""
    run_id: str
    at: str
    """ISO 8601, UTC."""
    role: str
    """planner, coder, compiler, profiler, critic, tuner, or operator for a person's hint."""
    agent: Literal["rules", "model", "person"]
    model: str | None = None
    generation: Count
    candidate_id: str | None = None
    move: str | None = None
    """What a coder's call was to do, such as improve; None for other roles."""
    prompt: str = ""
    reply: str = ""
    prompt_hash: str | None = None
    tokens_in: Count | None = None
    tokens_out: Count | None = None
    cost_usd: Annotated[float, Field(ge=0)] | None = None
    """None where the price is unknown."""
    latency_s: Annotated[float, Field(ge=0)]
    decision: str
    """One sentence for the overseer."""
    failure: str | None = None
    """Why the agent produced nothing, where it did not."""

    @model_validator(mode="after")
    def _model_is_named(self) -> AgentEvent:
        if (self.model is not None) != (self.agent == "model"):
            raise ValueError(
                f"an event of {self.agent!r} has model={self.model!r}; name a model iff one decided"
            )
        return self


OPERATOR = "operator"
"""Role of the person who watches over a run."""


class Verdict(StrEnum):
    """What a person said of a candidate."""

    APPROVED = "approved"
    REJECTED = "rejected"
    ANNOTATED = "annotated"
    ROLLED_BACK = "rolled_back"
    """Set aside for an earlier winner."""
    PINNED = "pinned"
    """Stays in the population, however it ranks."""
    KILLED = "killed"
    """Neither breeds nor wins."""
    RELEASED = "released"
    """Neither pinned nor killed any more."""


class Review(Record):
    """A person's word on a candidate."""

    candidate_id: str
    verdict: Verdict
    note: str = ""
    to: str = ""
    """Of ROLLED_BACK: the candidate that takes its place."""
    at: str
    """ISO 8601, UTC."""


@dataclass(frozen=True)
class EvaluatedCandidate:
    """A candidate with what the verifier said of its program, None until it has."""

    candidate: Candidate
    evaluation: Evaluation | None


@dataclass(frozen=True)
class RunCounts:
    """How far a run is."""

    candidates: int
    evaluated: int
    by_status: dict[Status, int]
    """Evaluated candidates by verdict; verdicts that did not occur are absent."""


@dataclass(frozen=True)
class Spend:
    """What the language models of a run have used."""

    calls: int
    tokens_in: int
    tokens_out: int
    cost_usd: float
    """Sum of the known prices."""
    unpriced: int = 0
    """Calls whose model has no known price: their tokens count, their cost does not."""

    @property
    def tokens(self) -> int:
        """Read and written."""
        return self.tokens_in + self.tokens_out
