"""Where the graph goes next: pure functions of the state."""

from __future__ import annotations

from typing import Literal

from langgraph.types import Send

from agents.schemas import Proposal
from graph.state import NodeName, ProposeJob, RunState


def after_plan(state: RunState) -> list[Send] | Literal[NodeName.CRITIQUE]:
    """One branch for each proposal; straight on where there is none."""
    if not state.proposals:
        return NodeName.CRITIQUE
    # A checkpoint keeps what is sent, and langgraph warns of any type in it that it does not know.
    return [Send(NodeName.PROPOSE.value, _job(proposal, state)) for proposal in state.proposals]


def _job(proposal: Proposal, state: RunState) -> ProposeJob:
    return ProposeJob(
        proposal=proposal, lessons=state.lessons, hints=state.hints, neighbours=state.neighbours
    )


def after_select(state: RunState) -> Literal[NodeName.PLAN, NodeName.VERIFY]:
    """Another generation until the critic or the budget stops the search."""
    return NodeName.VERIFY if state.stop else NodeName.PLAN


def after_verify(state: RunState) -> Literal[NodeName.REVIEW, NodeName.FINISH]:
    """Without a candidate that passed its soak the result is PyTorch itself."""
    return NodeName.REVIEW if state.winner else NodeName.FINISH


def after_review(state: RunState) -> Literal[NodeName.ARCHIVE, NodeName.VERIFY]:
    """A rejected winner is treated as a refuted one."""
    return NodeName.ARCHIVE if state.winner else NodeName.VERIFY
