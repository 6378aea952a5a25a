"""How a generation is parted into branches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agents.schemas import Move, Proposal
from graph.routing import BRANCHES, after_plan
from graph.state import NodeName, RunState


def proposals(moves: list[Move]) -> list[Proposal]:
    return [
        Proposal(id=f"001-{number:03d}", generation=1, move=move, idea="an idea", bottleneck="memory")
        for number, move in enumerate(moves)
    ]


@given(st.lists(st.sampled_from((Move.TUNE, Move.CROSS, Move.WRITE)), min_size=1, max_size=300))
def test_every_proposal_has_one_branch_and_one_for_a_model_has_it_alone(moves: list[Move]) -> None:
    planned = proposals(moves)
    sends = after_plan(RunState(proposals=planned, lessons=["l"], hints=["h"]))
    assert isinstance(sends, list)
    batches = [send.arg["proposals"] for send in sends]
    assert all(batches) and sorted(p.id for batch in batches for p in batch) == [p.id for p in planned]
    assert all(len(batch) == 1 for batch in batches if any(p.move.by_model for p in batch))
    assert sum(not batch[0].move.by_model for batch in batches) <= BRANCHES
    assert {send.node for send in sends} == {NodeName.PROPOSE}
    assert all(send.arg["lessons"] == ["l"] and send.arg["hints"] == ["h"] for send in sends)


def test_a_generation_of_a_few_has_a_branch_for_each_and_an_empty_one_none() -> None:
    sends = after_plan(RunState(proposals=proposals([Move.TUNE] * BRANCHES)))
    assert isinstance(sends, list) and len(sends) == BRANCHES
    assert after_plan(RunState()) == NodeName.CRITIQUE
