"""The planner played by scripted models: slots, moves and parents, what is sent back, and when the rules stand in."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from random import Random

import pytest

from agents.allowance import Caps
from agents.calls import ModelRequest
from agents.endpoint import ModelChoice, parse_models
from agents.planner import BOTTLENECKS, ModelPlanner
from agents.rules.planner import RulesPlanner
from agents.schemas import ArmOutcome, Briefing, Member, Move, Proposal, short_id
from tests.agents.fakes import Desk, Line, in_turn, silent
from tests.agents.test_model_agents import FOREIGN, POPULATION, knowing
from tests.agents.test_rules import briefing
from tests.members import member


def opening(generation: int = 1, *, slots: int = 6, population: tuple[Member, ...] = POPULATION) -> Briefing:
    found = briefing(generation, population=population, neighbours=(FOREIGN,), slots=slots)
    return replace(found, scene=knowing(found.scene))


def planner(desk: Desk, coders: str = "m") -> ModelPlanner:
    return ModelPlanner(desk.asker, RulesPlanner(), parse_models(coders))


def slots_of(request: ModelRequest) -> dict[int, tuple[str, list[str]]]:
    """Open slots of a planner's prompt: number -> move and suggested parents."""
    found = re.findall(
        r"^- slot (\d+): move (\w+); suggested parents: (.*?)(?:;.*)?$", request.messages[1].text, re.M
    )
    return {int(n): (move, [] if names == "none" else names.split(", ")) for n, move, names in found}


def ideas(*slots: int, **changes: object) -> str:
    fields = {"bottleneck": "memory", "idea": "Read x once and\nwrite y once.", **changes}
    return json.dumps({"proposals": [{"slot": n, **fields} for n in slots]})


def eager(request: ModelRequest) -> Line:
    """A planner with an idea for every slot."""
    return ideas(*slots_of(request))


def test_generation_0_is_the_rules_alone() -> None:
    desk = Desk(eager)
    assert planner(desk).plan(opening(0), Random(0)) == RulesPlanner().plan(opening(0), Random(0))
    assert desk.models.requests == []


@pytest.mark.parametrize(("slots", "by_model"), [(1, 1), (2, 1), (3, 2), (6, 3), (8, 4)])
def test_half_of_the_slots_go_to_a_model_and_the_rest_to_the_rules(slots: int, by_model: int) -> None:
    desk = Desk(eager)
    proposals = planner(desk).plan(opening(slots=slots), Random(0))
    assert [p.move.by_model for p in proposals[:by_model]] == [True] * by_model
    assert not any(p.move.by_model for p in proposals[by_model:])
    assert [p.id for p in proposals] == [f"001-{i:03d}" for i in range(len(proposals))]
    assert len(proposals) <= slots
    for proposal in proposals[:by_model]:
        assert (proposal.model, proposal.bottleneck) == ("m", "memory")
        assert proposal.idea == "Read x once and write y once."


def test_a_survivor_that_waits_for_its_launches_makes_no_slot_of_its_own() -> None:
    waiting = member("run-000-000", 20.0)
    profile = waiting.evaluation.profile
    assert profile is not None
    bound = waiting.evaluation.model_copy(
        update={"profile": profile.model_copy(update={"bottleneck": "launch"})}
    )
    for slots in (1, 2):
        found = planner(Desk(eager)).plan(
            opening(slots=slots, population=(replace(waiting, evaluation=bound),)), Random(0)
        )
        assert len(found) == slots


def test_what_a_model_leaves_empty_the_rules_fill() -> None:
    proposals = planner(Desk(in_turn(ideas(2)))).plan(opening(slots=4), Random(0))
    assert [p.move.by_model for p in proposals].count(True) == 1 and len(proposals) > 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ideas(9), "slot 9 is not open; fill each of [1, 2, 3] once"),
        (ideas(1, 1), "slot 1 is not open"),
        (ideas(1, bottleneck="bandwidth"), f"bottleneck 'bandwidth' is none of {sorted(BOTTLENECKS)}"),
        (
            ideas(1, parents=["009-009"]),
            "no candidate '009-009'; there are ['000-000', '000-001', '000-002']",
        ),
    ],
)
def test_a_plan_that_names_what_there_is_not_is_sent_back(answer: str, words: str) -> None:
    desk = Desk(in_turn(answer, ideas(1, 2, 3)))
    proposals = planner(desk).plan(opening(), Random(0))
    assert words in (desk.failures[0] or "")
    assert words in desk.models.requests[1].messages[-1].text
    assert sum(p.move.by_model for p in proposals) == 3


@pytest.mark.parametrize(
    "desk",
    [Desk(silent), Desk(lambda _: "Fuse everything!"), Desk(eager, caps=Caps(tokens=10))],
    ids=["silent", "prose", "capped"],
)
def test_without_an_answer_the_rules_fill_every_slot(desk: Desk) -> None:
    proposals = planner(desk).plan(opening(), Random(0))
    assert proposals and not any(p.move.by_model for p in proposals)
    assert desk.journal.calls


def test_a_planner_without_coders_that_answer_is_not_asked() -> None:
    desk = Desk(silent)
    for _ in range(3):
        planner(desk).plan(opening(), Random(0))
    assert len(desk.models.requests) == 3
    planner(desk).plan(opening(), Random(0))
    assert len(desk.models.requests) == 3


def moves(seeds: int = 60, slots: int = 6, **changes: object) -> list[tuple[Proposal, tuple[str, list[str]]]]:
    """What a planner of many seeds proposes, each with what its slot said."""
    found: list[tuple[Proposal, tuple[str, list[str]]]] = []
    for seed in range(seeds):
        desk = Desk(lambda request: ideas(*slots_of(request), **changes))
        proposals = [p for p in planner(desk).plan(opening(slots=slots), Random(seed)) if p.move.by_model]
        found += zip(proposals, slots_of(desk.models.requests[0]).values(), strict=True)
    return found


def test_every_move_that_is_possible_is_proposed_with_its_number_of_parents() -> None:
    found = moves()
    assert {p.move for p, _ in found} == {move for move in Move if move.by_model}
    for proposal, (move, suggested) in found:
        assert move == proposal.move.value
        assert [short_id(parent) for parent in proposal.parents] == suggested
        wanted = {Move.WRITE: (0,), Move.PORT: (0,), Move.COMBINE: (2, 3)}.get(proposal.move, (1,))
        assert len(proposal.parents) in wanted
        assert proposal.innovation == (FOREIGN.id if proposal.move is Move.PORT else None)
        if proposal.move is Move.COMBINE:
            assert proposal.parents == ("run-000-000", "run-000-002"), "the best of each source"


def test_parents_that_a_model_names_count_where_the_move_takes_as_many() -> None:
    for proposal, (_, suggested) in moves(parents=["000-002"]):
        one = proposal.move in (Move.IMPROVE, Move.SIMPLIFY)
        expected = ["000-002"] if one else suggested
        assert [short_id(parent) for parent in proposal.parents] == expected
    for proposal, (_, suggested) in moves(parents=["000-001", "000-002", "000-001"]):
        expected = ["000-001", "000-002"] if proposal.move is Move.COMBINE else suggested
        assert [short_id(parent) for parent in proposal.parents] == expected


def test_a_move_that_nothing_supports_is_not_proposed() -> None:
    bare = replace(opening(population=POPULATION[:2]), neighbours=())
    desk = Desk(eager)
    seen = {
        p.move for seed in range(40) for p in planner(Desk(eager)).plan(bare, Random(seed)) if p.move.by_model
    }
    assert seen == {Move.WRITE, Move.IMPROVE, Move.SIMPLIFY}
    alone = replace(bare, population=())
    assert {p.move for p in planner(desk).plan(alone, Random(0)) if p.move.by_model} == {Move.WRITE}


def test_the_model_that_gains_more_for_less_writes_more() -> None:
    gains = {"good": 0.3, "poor": 0.0}
    outcomes = tuple(
        ArmOutcome(name, move, gain, 0.1)
        for name, gain in gains.items()
        for move in Move
        for _ in range(8)
        if move.by_model
    )
    known = replace(opening(slots=12), outcomes=outcomes)
    desk = Desk(eager, ensemble="good,poor")
    proposals = [p for p in planner(desk, "good,poor").plan(known, Random(0)) if p.move.by_model]
    assert [p.model for p in proposals].count("good") >= 5


def test_a_plan_is_the_same_for_the_same_seed_and_paid_once() -> None:
    desk = Desk(eager)
    first = planner(desk).plan(opening(), Random("7/1"))
    assert planner(desk.resumed(silent)).plan(opening(), Random("7/1")) == first


def test_the_planners_prompt_has_all_that_is_known() -> None:
    desk = Desk(eager)
    planner(desk).plan(opening(), Random(0))
    prompt = desk.models.requests[0].messages[1].text
    for words in (
        "000-002 (recipe)",
        "Try float4.",
        "Wider loads",
        "output 0 is off",
        "Innovation ffffffff",
        "Floor:",
    ):
        assert words in prompt
    assert desk.journal.calls[0].decision.startswith("3 ideas: Read x once")
    assert desk.models.requests[0].schema is not None


@pytest.mark.parametrize("move", [move for move in Move if move.by_model])
def test_the_planners_prompt_file_explains_every_move(move: Move) -> None:
    desk = Desk(eager)
    planner(desk).plan(opening(), Random(0))
    assert f"\n- {move.value}: " in desk.models.requests[0].messages[0].text


def test_the_coders_ensemble_is_what_the_bandit_draws_from() -> None:
    desk = Desk(eager, ensemble="m")
    played = ModelPlanner(desk.asker, RulesPlanner(), (ModelChoice("x", 1.0), ModelChoice("y", 1.0)))
    found = {p.model for seed in range(20) for p in played.plan(opening(), Random(seed)) if p.move.by_model}
    assert found == {"x", "y"} and set(desk.models.asked) == {"m"}
