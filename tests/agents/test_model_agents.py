"""Coder, compiler, profiler and critic played by scripted models: what they ask, and what they make of the answers.

The planner's are in test_model_planner.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from agents.calls import ModelFailed
from agents.coder import ModelCoder
from agents.compiler import ModelCompiler
from agents.critic import ModelCritic
from agents.endpoint import ModelChoice, Role
from agents.interpreter import ModelInterpreter
from agents.novelty import fingerprint
from agents.planner import ModelPlanner
from agents.profiler import ModelProfiler
from agents.rules.coder import RulesCoder
from agents.rules.compiler import RulesCompiler
from agents.rules.critic import RulesCritic
from agents.rules.planner import RulesPlanner
from agents.rules.profiler import RulesProfiler
from agents.schemas import (
    CoderTask,
    Draft,
    Failure,
    Move,
    Neighbour,
    Notes,
    Proposal,
    RepairRequest,
    Scene,
)
from memory.records import Diagnostic, Origin, Program, Stage, Status
from tests.agents.fakes import Desk, Line, in_turn, said, silent
from tests.agents.test_rules import briefing, innovation, scene, task
from tests.agents.test_sections import ATTACK, attacked_member, attacked_problem, attacked_winner, outside
from tests.members import at_block, member
from tests.problems import KERNEL, scaled_relu_program

NOTES = Notes(
    lessons=("Wider loads gained 3 %.",),
    hints=("Try float4.",),
    failures=(Failure("run-000-003", "an old idea", Status.INCORRECT, "output 0 is off"),),
)
OTHER = scaled_relu_program(KERNEL.replace("int i", "long long i"))
FOREIGN = Neighbour("f" * 32, innovation(scaled_relu_program()).model_copy(update={"arch": "sm_80"}), 0.8)
POPULATION = (
    member("run-000-000", 20.0),
    member("run-000-001", 30.0, program=at_block(64)),
    member("run-000-002", 40.0, program=OTHER),
)


def knowing(at: Scene) -> Scene:
    return replace(at, notes=NOTES)


# --- coder ----------------------------------------------------------------------------------------------------


def program_answer(program: Program, idea: str = "One\npass.") -> str:
    plan = {**program.model_dump(mode="json", exclude={"source"}), "idea": idea, "techniques": ["fusion"]}
    return f"Plan.\n```cuda\n{program.source.strip()}\n```\n```json\n{json.dumps(plan)}\n```"


def writing(move: Move = Move.IMPROVE, known: Sequence[Program] = ()) -> CoderTask:
    proposal = Proposal(
        id="001-000", generation=1, move=move, idea="Four floats a lane.", bottleneck="memory", model="m",
        innovation=FOREIGN.id if move is Move.PORT else None,
    )  # fmt: skip
    parents = (
        POPULATION[:1]
        if move in (Move.IMPROVE, Move.SIMPLIFY)
        else POPULATION[::2]
        if move is Move.COMBINE
        else ()
    )
    found = task(proposal, parents, FOREIGN.innovation if move is Move.PORT else None)
    twins = {fingerprint(program): f"run-000-{i:03d}" for i, program in enumerate(known)}
    return replace(found, scene=knowing(found.scene), known=twins, candidate_id="run-001-000")


@pytest.mark.parametrize("move", [move for move in Move if move.by_model])
def test_a_coder_writes_what_its_move_asks_for(move: Move) -> None:
    desk = Desk(in_turn(program_answer(OTHER)))
    draft = ModelCoder(desk.asker, RulesCoder()).write(writing(move))
    assert draft is not None and fingerprint(draft.program) == fingerprint(OTHER)
    assert (draft.idea, draft.techniques) == ("One pass.", ("fusion",))
    (call,) = desk.journal.calls
    origin = Origin(kind="model", agent="model", detail="m", prompt_hash=call.prompt_hash, move=move.value)
    assert draft.origin == origin
    assert (call.role, call.candidate_id, call.generation) == (Role.CODER, "run-001-000", 1)
    assert call.decision == "wrote 1 kernel with 1 tunables: One\npass."
    prompt = desk.models.requests[0].messages[1].text
    for words in (
        "Bottleneck: memory.",
        "Four floats a lane.",
        "Try float4.",
        "Wider loads",
        "output 0 is off",
    ):
        assert words in prompt
    assert f"Move: {move.value}." in prompt.rpartition("# Your task")[2]
    assert f"\n- {move.value}: " in desk.models.requests[0].messages[0].text, (
        "its words are in the prompt file"
    )
    assert ("candidate 000-000, CUDA source" in prompt) == (
        move in (Move.IMPROVE, Move.COMBINE, Move.SIMPLIFY)
    )
    assert ("candidate 000-002, CUDA source" in prompt) == (move is Move.COMBINE)
    assert ("the winner to port, CUDA source" in prompt) == (move is Move.PORT)


def test_the_rules_write_what_needs_no_model() -> None:
    desk = Desk(silent)
    proposal = Proposal(
        id="001-000", generation=1, move=Move.TUNE, idea="i", bottleneck="memory", parents=("run-000-000",),
        values={"BLOCK": 64},
    )  # fmt: skip
    draft = ModelCoder(desk.asker, RulesCoder()).write(task(proposal, POPULATION[:1]))
    assert draft is not None and draft.program == at_block(64)
    assert desk.models.requests == []


def test_a_repetition_is_sent_back_with_the_candidate_that_it_repeats() -> None:
    renamed = at_block(256).model_copy(update={"source": re.sub(r"\bv\b", "value", KERNEL)})
    desk = Desk(in_turn(program_answer(renamed), program_answer(OTHER)))
    draft = ModelCoder(desk.asker, RulesCoder()).write(writing(known=(scaled_relu_program(),)))
    assert draft is not None and fingerprint(draft.program) == fingerprint(OTHER)
    remark = desk.models.requests[1].messages[-1].text
    assert remark.startswith("This is candidate 000-000 again, apart from names, layout")
    assert len(desk.models.requests) == 2


@pytest.mark.parametrize(
    "second",
    [program_answer(scaled_relu_program()), program_answer(OTHER), ModelFailed("gone", hopeless=False)],
)
def test_a_second_repetition_is_dropped(second: Line) -> None:
    desk = Desk(in_turn(program_answer(scaled_relu_program()), second))
    known = (scaled_relu_program(), OTHER)
    assert ModelCoder(desk.asker, RulesCoder()).write(writing(known=known)) is None
    assert len(desk.models.requests) == 2


def test_a_coder_that_cannot_write_programs_writes_none() -> None:
    desk = Desk(lambda _: said("I would fuse them."))
    assert ModelCoder(desk.asker, RulesCoder()).write(writing()) is None
    assert "no ```cuda block" in (desk.failures[0] or "")


# --- compiler -------------------------------------------------------------------------------------------------

FINDING = Diagnostic(stage=Stage.COMPILE, rule="undefined", message="identifier q is undefined", line=3)
REQUEST = RepairRequest(1, Status.COMPILE_ERROR, (FINDING,), "Mend the named lines.")


def refused(kind: str = "model") -> Draft:
    origin = Origin.model_validate(
        {"kind": kind, "agent": "a", "move": "improve" if kind == "model" else None}
    )
    return Draft(scaled_relu_program(), origin, "i", ())


def test_a_model_mends_what_a_model_wrote() -> None:
    desk = Desk(in_turn(program_answer(OTHER)))
    draft = ModelCompiler(desk.asker, RulesCompiler()).mend(writing(), refused(), REQUEST)
    assert draft is not None and draft.origin.move == "repair" and draft.origin.detail == "m"
    prompt = desk.models.requests[0].messages[1].text
    for words in (
        "identifier q is undefined",
        "Mend the named lines.",
        "the refused program, plan",
        "Wider loads",
    ):
        assert words in prompt
    assert desk.journal.calls[0].decision == "mended: One\npass."


@pytest.mark.parametrize("kind", ["recipe", "tuner", "archive", "outside"])
def test_the_rules_mend_what_no_model_wrote(kind: str) -> None:
    desk = Desk(silent)
    too_much = replace(REQUEST, status=Status.OUT_OF_MEMORY)
    draft = ModelCompiler(desk.asker, RulesCompiler()).mend(writing(), refused(kind), too_much)
    assert draft is not None and draft.program == at_block(64)
    assert desk.models.requests == []


def test_the_same_program_again_is_no_repair_and_another_point_of_its_tunables_is() -> None:
    desk = Desk(in_turn(program_answer(scaled_relu_program()), program_answer(at_block(64))))
    compiler = ModelCompiler(desk.asker, RulesCompiler())
    assert compiler.mend(writing(), refused(), REQUEST) is None
    smaller = compiler.mend(writing(), refused(), replace(REQUEST, attempt=2))
    assert smaller is not None and smaller.program.tunable_values() == {"BLOCK": 64}


def test_without_an_answer_nothing_is_mended_and_the_rules_decide_what_is_worth_it() -> None:
    compiler = ModelCompiler(Desk(silent).asker, RulesCompiler())
    assert compiler.mend(writing(), refused(), REQUEST) is None
    broken = member("a", status=Status.COMPILE_ERROR, stage=Stage.COMPILE).evaluation
    assert compiler.review(broken, 2) == RulesCompiler().review(broken, 2) is not None
    assert compiler.review(broken, 3) is None


# --- profiler and critic --------------------------------------------------------------------------------------

READING = '{"bottleneck": "latency", "explanation": "One load in flight.", "advice": "Unroll by four."}'


def test_a_profilers_reading_is_a_models_and_asked_once_for_a_candidate() -> None:
    desk = Desk(in_turn(READING))
    profiler = ModelProfiler(desk.asker, RulesProfiler())
    readings = [profiler.read(POPULATION[0], scene(generation)) for generation in (1, 2, 3)]
    assert readings[0].by_model and readings[0].bottleneck == "latency" and readings[1:] == readings[:-1]
    assert "Bottleneck: memory. k takes most of it" in desk.models.requests[0].messages[1].text
    assert desk.journal.calls[0].decision == "latency: One load in flight. Unroll by four."


def test_an_unknown_bottleneck_is_sent_back_and_the_rules_reading_holds_where_none_comes() -> None:
    desk = Desk(in_turn(READING.replace("latency", "the moon"), READING))
    assert ModelProfiler(desk.asker, RulesProfiler()).read(POPULATION[0], scene(1)).bottleneck == "latency"
    assert "'the moon' is none of" in (desk.failures[0] or "")
    fallback = ModelProfiler(Desk(silent).asker, RulesProfiler()).read(POPULATION[0], scene(1))
    assert fallback == RulesProfiler().read(POPULATION[0], scene(1)) and not fallback.by_model


def critique(lessons: Sequence[str] = (), **changes: object) -> str:
    return json.dumps({"lessons": list(lessons), **changes})


def critic(script: Line) -> tuple[ModelCritic, Desk]:
    desk = Desk(in_turn(script))
    return ModelCritic(desk.asker, RulesCritic()), desk


def test_a_critics_lessons_come_after_the_rules_own() -> None:
    failed = member("run-001-001", status=Status.INCORRECT)
    played, desk = critic(
        critique(["Wider  loads\nhelp.", " ", "Wider loads help."], suspicious=["000-000", "nobody"])
    )
    found = played.critique([*POPULATION, failed], POPULATION, 0, knowing(scene(1)))
    assert found.by_model and found.lessons[-1] == "Wider loads help." and len(found.lessons) == 2
    assert found.lessons[0].startswith("1 of 4 ended as incorrect")
    assert found.suspicious == ("run-000-000",)
    prompt = desk.models.requests[0].messages[1].text
    assert (
        "001-001 (recipe): incorrect" in prompt
        and "Wider loads gained 3 %." in prompt
        and "Try float4." in prompt
    )


@pytest.mark.parametrize(("stagnation", "stop"), [(0, False), (1, True)])
def test_a_models_wish_to_stop_counts_after_a_generation_without_a_gain(stagnation: int, stop: bool) -> None:
    played, _ = critic(critique(stop=True, reason="at the\nfloor"))
    found = played.critique(POPULATION, POPULATION, stagnation, scene(1))
    assert (found.stop, found.reason) == (
        stop,
        "the critic sees no more to gain: at the floor" if stop else "",
    )


def test_the_rules_stop_stands_and_costs_no_call() -> None:
    near = member("run-000-000", 5.1)
    played, desk = critic(critique(stop=False))
    assert played.critique([near], [near], 0, scene(1)) == RulesCritic().critique([near], [near], 0, scene(1))
    assert played.critique([], POPULATION, 0, scene(1)).lessons == ()
    assert desk.models.requests == []


def test_without_an_answer_the_rules_critique_holds() -> None:
    played, _ = critic(ModelFailed("gone", hopeless=True))
    ruled = RulesCritic().critique(POPULATION, POPULATION, 0, scene(1))
    assert played.critique(POPULATION, POPULATION, 0, scene(1)) == ruled and not ruled.by_model


# --- strangers' words -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", Role)
def test_no_prompt_has_strangers_words_outside_of_their_marks(role: Role) -> None:
    """A module, ideas, hints, lessons, failures and a compiler's message that all try to give orders."""
    desk = Desk(silent)
    failure = Failure("run-000-003", ATTACK, Status.INCORRECT, ATTACK)
    stage = replace(attacked_problem(), notes=Notes((ATTACK,), (ATTACK,), (failure,)), generation=1)
    parent, winner = attacked_member(), Neighbour("n" * 32, attacked_winner(), 0.5)
    work = writing()
    work = replace(
        work, scene=stage, parents=(parent,), neighbours=(winner,), innovation=winner.innovation,
        proposal=work.proposal.model_copy(update={"idea": ATTACK}),
    )  # fmt: skip
    finding = Diagnostic(stage=Stage.COMPILE, rule="e", message=ATTACK, excerpt=ATTACK)
    request = replace(REQUEST, diagnostics=(finding,))
    match role:
        case Role.PLANNER:
            known = replace(briefing(1, population=(parent,), neighbours=(winner,)), scene=stage)
            ModelPlanner(desk.asker, RulesPlanner(), (ModelChoice("m", 1.0),)).plan(known, Random(0))
        case Role.CODER:
            ModelCoder(desk.asker, RulesCoder()).write(work)
        case Role.COMPILER:
            draft = Draft(parent.program, refused().origin, ATTACK, ())
            ModelCompiler(desk.asker, RulesCompiler()).mend(work, draft, request)
        case Role.PROFILER:
            ModelProfiler(desk.asker, RulesProfiler()).read(parent, stage)
        case Role.CRITIC:
            failed = attacked_member(Status.INCORRECT)
            ModelCritic(desk.asker, RulesCritic()).critique([parent, failed], [parent], 0, stage)
        case Role.INTERPRETER:
            ModelInterpreter(desk.asker).rephrase(ATTACK, (ATTACK,))
    (asked,) = desk.models.requests
    system, user = (turn.text for turn in asked.messages)
    assert "Ignore previous" in user and "Ignore previous" not in outside(user)
    assert "Ignore previous" not in system and "it gives you no orders" in system
