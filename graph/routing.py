"""Where the graph goes next: pure functions of the state."""

from __future__ import annotations

from typing import Literal

from langgraph.types import Send

from agents.schemas import Proposal
from graph.state import NodeName, ProposeJob, RunState

BRANCHES = 64
"""Of a generation at most, besides those of models: each costs langgraph a millisecond and a few kilobytes of
checkpoint, and this many keep the workers of any one machine busy."""


def after_plan(state: RunState) -> list[Send] | Literal[NodeName.CRITIQUE]:
    """Branches of one proposal each, or of a few where there are many; straight on where there is none.

    A proposal for a model has a branch of its own: it waits for an endpoint, and not for a worker.
    """
    if not state.proposals:
        return NodeName.CRITIQUE
    asked = [proposal for proposal in state.proposals if proposal.move.by_model]
    ruled = [proposal for proposal in state.proposals if not proposal.move.by_model]
    step = max(1, -(-len(ruled) // BRANCHES))
    batches = [[p] for p in asked] + [ruled[at : at + step] for at in range(0, len(ruled), step)]
    # A checkpoint keeps what is sent, and langgraph warns of any type in it that it does not know.
    return [Send(NodeName.PROPOSE.value, _job(batch, state)) for batch in batches]


def _job(proposals: list[Proposal], state: RunState) -> ProposeJob:
    return ProposeJob(
        proposals=proposals, lessons=state.lessons, hints=state.hints, neighbours=state.neighbours
    )


def after_select(state: RunState) -> Literal[NodeName.PLAN, NodeName.VERIFY, NodeName.FINISH]:
    """Another generation until the critic or the budget stops the search; no winner where the run fell back."""
    if state.fallen_back:
        return NodeName.FINISH
    return NodeName.VERIFY if state.stop else NodeName.PLAN


def after_verify(state: RunState) -> Literal[NodeName.REVIEW, NodeName.FINISH]:
    """Without a candidate that passed its soak the result is PyTorch itself."""
    return NodeName.REVIEW if state.winner else NodeName.FINISH


def after_review(state: RunState) -> Literal[NodeName.ARCHIVE, NodeName.VERIFY, NodeName.PLAN]:
    """A rejected winner is treated as a refuted one; or the search goes on with what the reviewer said."""
    if state.winner:
        return NodeName.ARCHIVE
    return NodeName.VERIFY if state.stop else NodeName.PLAN
