"""The agents by rules: what they propose, write, mend and say."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.rules import tuner
from agents.rules.coder import RulesCoder
from agents.rules.compiler import RulesCompiler
from agents.rules.critic import RulesCritic
from agents.rules.planner import RulesPlanner
from agents.rules.profiler import RulesProfiler
from agents.schemas import (
    Briefing,
    CoderTask,
    Draft,
    Member,
    Move,
    Neighbour,
    Notes,
    Proposal,
    RepairRequest,
    Scene,
)
from memory.records import (
    Diagnostic,
    DType,
    Graph,
    Innovation,
    Node,
    Origin,
    Problem,
    Program,
    Provenance,
    Stage,
    Status,
    TensorSpec,
    Tunable,
)
from memory.signature import problem_operations
from tests.members import at_block, herd, member
from tests.problems import scaled_relu_problem, scaled_relu_program
from tools.gpus import gpu_named
from tools.program import validate
from tools.recipes.blueprints import blueprints

PROBLEM = scaled_relu_problem()
H200 = gpu_named("h200")


def scene(generation: int = 0, problem: Problem = PROBLEM) -> Scene:
    return Scene(problem, None, H200, 1.0, generation, Notes())


def briefing(
    generation: int = 0,
    *,
    population: tuple[Member, ...] = (),
    neighbours: tuple[Neighbour, ...] = (),
    slots: int = 6,
    gentle: bool = False,
) -> Briefing:
    tried = frozenset(m.candidate.program_hash for m in population)
    return Briefing(scene(generation), slots, population, herd(population), tried, neighbours, gentle)


def task(
    proposal: Proposal, parents: tuple[Member, ...] = (), innovation: Innovation | None = None
) -> CoderTask:
    return CoderTask(proposal, scene(proposal.generation), parents, innovation)


def innovation(program: Program) -> Innovation:
    return Innovation(
        problem_hash=PROBLEM.content_hash(),
        problem_name="scaled_relu",
        signature="mul, relu",
        operations=problem_operations(PROBLEM),
        dtype=DType.F32,
        arch="sm_90a",
        program=program,
        idea="fuse both",
        techniques=(),
        best_us=5.0,
        speedup=2.0,
        floor_fraction=0.5,
        verification="soak",
        provenance=Provenance(
            run_id="r",
            device="simulator:h200",
            time_source="modelled",
            created="2026-01-01",
            versions={},
            trials=8,
        ),
    )


# --- planner and coder ----------------------------------------------------------------------------------------


def test_the_first_generation_holds_a_program_for_every_blueprint_and_all_are_valid() -> None:
    proposals = RulesPlanner().plan(briefing(slots=12), Random(0))
    programs = [RulesCoder().write(task(p)).program for p in proposals]
    assert {p.blueprint for p in proposals} == {b.name for b in blueprints(PROBLEM)}
    assert len({p.content_hash() for p in programs}) == len(programs)
    for program in programs:
        assert validate(program, PROBLEM, H200)[1] == ()


def with_graph(*nodes: Node, inputs: tuple[str, ...], shapes: dict[str, TensorSpec]) -> Problem:
    last = nodes[-1].outputs[0]
    assert last is not None
    graph = Graph(values=shapes, inputs=inputs, nodes=nodes, outputs=(last,))
    return PROBLEM.model_copy(update={"graph": graph})


def planned(problem: Problem) -> list[tuple[Proposal, Program]]:
    """The first generation's proposals with their programs."""
    opening = replace(briefing(), scene=scene(problem=problem))
    proposals = RulesPlanner().plan(opening, Random(0))
    return [
        (p, RulesCoder().write(replace(task(p), scene=scene(problem=problem))).program) for p in proposals
    ]


def test_a_module_without_an_operation_that_a_recipe_serves_gets_its_library_plan() -> None:
    values = {"x": TensorSpec.dense((9, 6), DType.F32), "i": TensorSpec.dense((7,), DType.I64)}
    values["y"] = TensorSpec.dense((7, 6), DType.F32)
    index = Node(name="y", op="aten.index.Tensor", args=("x", ("i",)), outputs=("y",))
    problem = with_graph(index, inputs=("x", "i"), shapes=values)
    ((proposal, program),) = planned(problem)
    assert proposal.blueprint == "library"
    assert validate(program, problem, H200)[1] == ()


def test_what_cannot_be_expressed_is_proposed_all_the_same_so_that_its_verdict_says_why() -> None:
    values = {name: TensorSpec.dense((9, 6), DType.F32) for name in "xy"}
    draw = Node(name="y", op="aten.bernoulli.default", args=("x",), outputs=("y",))
    problem = with_graph(draw, inputs=("x",), shapes=values)
    ((proposal, program),) = planned(problem)
    assert proposal.blueprint == "library"
    (complaint,) = validate(program, problem, H200)[1]
    assert "aten.bernoulli.default" in complaint.message and "random numbers" in complaint.message


def test_a_proposal_says_where_eager_is_bound_by_the_host() -> None:
    names = ["x", *(f"y{i}" for i in range(30))]
    nodes = tuple(
        Node(name=after, op="aten.relu.default", args=(before,), outputs=(after,))
        for before, after in pairwise(names)
    )
    for side, bound in ((64, True), (8192, False)):
        shapes = dict.fromkeys(names, TensorSpec.dense((side, side), DType.F32))
        proposal, _ = planned(with_graph(*nodes, inputs=("x",), shapes=shapes))[0]
        assert ("host-bound" in proposal.idea) == bound
        assert proposal.bottleneck == ("launch" if bound else "memory")


def test_a_known_winner_is_recalled_first() -> None:
    known = Neighbour("abc", innovation(scaled_relu_program()), 0.9)
    first = RulesPlanner().plan(briefing(neighbours=(known,)), Random(0))[0]
    assert first.move is Move.RECALL
    draft = RulesCoder().write(task(first, innovation=known.innovation))
    assert draft.program == scaled_relu_program()
    assert draft.origin.kind == "archive"


def test_a_winner_of_another_shape_of_problem_is_not_recalled() -> None:
    other = scaled_relu_program(outputs=("y", "y"))
    strange = scaled_relu_program(dims={"ROWS": "q.shape[0]", "COLS": "x.shape[1]"})
    neighbours = tuple(Neighbour(str(i), innovation(p), 0.9) for i, p in enumerate((other, strange)))
    elsewhere = innovation(scaled_relu_program()).model_copy(update={"operations": ("mul", "tanh")})
    neighbours += (Neighbour("2", elsewhere, 0.9),)
    assert all(p.move is Move.SEED for p in RulesPlanner().plan(briefing(neighbours=neighbours), Random(0)))


@given(st.integers(0, 50), st.booleans())
def test_later_generations_vary_survivors_without_repeating_a_program(seed: int, gentle: bool) -> None:
    tunables = (
        Tunable(name="BLOCK", value=128, choices=(64, 128, 256)),
        Tunable(name="ITEMS", value=1, choices=(1, 2, 4, 8)),
    )
    parents = tuple(
        member(f"p{i}", 20.0 + i, program=scaled_relu_program(tunables=tunables).with_values(values))
        for i, values in enumerate(({"BLOCK": 64}, {"ITEMS": 4}))
    )
    asked = briefing(1, population=parents, gentle=gentle)
    proposals = RulesPlanner().plan(asked, Random(seed))
    assert proposals
    by_id = {m.candidate.id: m for m in parents}
    written = [RulesCoder().write(task(p, tuple(by_id[i] for i in p.parents))).program for p in proposals]
    hashes = [p.content_hash() for p in written]
    assert len(set(hashes)) == len(hashes)
    assert not set(hashes) & asked.tried
    if gentle:
        assert all(p.move is Move.TUNE and len(p.values) == 1 for p in proposals)


def test_a_survivor_that_waits_for_its_launches_is_replayed_once() -> None:
    waiting = member("p0", 20.0)
    profile = waiting.evaluation.profile
    assert profile is not None
    launch = profile.model_copy(update={"bottleneck": "launch"})
    waiting = replace(waiting, evaluation=waiting.evaluation.model_copy(update={"profile": launch}))
    first, *others = RulesPlanner().plan(briefing(1, population=(waiting,)), Random(0))
    assert first.move is Move.REPLAY and all(p.move is not Move.REPLAY for p in others)
    draft = RulesCoder().write(task(first, (waiting,)))
    assert draft.program == waiting.program.model_copy(update={"replay": True})
    assert "cuda graph" in draft.techniques
    done = replace(waiting, program=draft.program)
    assert all(
        p.move is not Move.REPLAY for p in RulesPlanner().plan(briefing(1, population=(done,)), Random(0))
    )
    busy = member("p1", 20.0)
    assert all(
        p.move is not Move.REPLAY for p in RulesPlanner().plan(briefing(1, population=(busy,)), Random(0))
    )


def test_the_same_seed_gives_the_same_proposals() -> None:
    parents = (member("p0", 20.0), member("p1", 30.0, program=at_block(64)))
    plans = [list(RulesPlanner().plan(briefing(1, population=parents), Random("7/1"))) for _ in range(2)]
    assert plans[0] == plans[1]


def test_points_afar_follow_where_all_near_were_tried_and_nothing_once_every_point_was() -> None:
    parents = tuple(member(f"p{b}", float(b), program=at_block(b)) for b in (64, 128, 256))
    assert list(RulesPlanner().plan(briefing(1, population=parents, gentle=True), Random(0))) == []
    afar = RulesPlanner().plan(briefing(1, population=parents, slots=500), Random(0))
    assert afar and all(p.move is Move.SEED for p in afar)
    written = [RulesCoder().write(task(p)).program.content_hash() for p in afar]
    assert len(set(written)) == len(written)
    everything = briefing(1, population=parents, slots=500)
    everything = replace(everything, tried=everything.tried | set(written))
    assert list(RulesPlanner().plan(everything, Random(1))) == []


# --- tuner ----------------------------------------------------------------------------------------------------


@given(st.integers(0, 200), st.booleans())
def test_a_mutation_stays_within_the_choices_and_changes_something(seed: int, gentle: bool) -> None:
    program = scaled_relu_program()
    values = tuner.mutate(program, Random(seed), gentle=gentle)
    assert values
    assert program.with_values(values) != program


def test_a_program_without_choices_cannot_be_mutated() -> None:
    fixed = scaled_relu_program(tunables=(Tunable(name="BLOCK", value=128, choices=(128,)),))
    assert tuner.mutate(fixed, Random(0), gentle=False) == {}


@given(st.integers(0, 200))
def test_a_cross_takes_every_value_from_one_of_its_parents(seed: int) -> None:
    values = tuner.cross(at_block(64), at_block(256), Random(seed))
    assert values == {"BLOCK": 256}


# --- compiler, profiler, critic -------------------------------------------------------------------------------


def test_a_failure_is_worth_two_repairs_and_a_pass_none() -> None:
    broken = member("a", status=Status.COMPILE_ERROR, stage=Stage.COMPILE).evaluation
    compiler = RulesCompiler()
    request = compiler.review(broken, 1)
    assert request is not None
    assert request.diagnostics[0].message == "it broke"
    assert compiler.review(broken, 3) is None
    assert compiler.review(member("b").evaluation, 1) is None
    assert compiler.review(member("c", status=Status.SUSPICIOUS).evaluation, 1) is None


@pytest.mark.parametrize("rule", ["shared_memory", "block_range"])
def test_the_rules_mend_a_resource_that_ran_out_by_stepping_down(rule: str) -> None:
    complaint = Diagnostic(stage=Stage.COMPILE, rule=rule, message="too much")
    request = RepairRequest(1, Status.COMPILE_ERROR, (complaint,), "use less")
    proposal = Proposal(id="000-000", generation=0, move=Move.SEED, idea="i", bottleneck="memory")
    draft = Draft(scaled_relu_program(), Origin(kind="recipe", agent="rules"), "i", ())
    mended = RulesCompiler().mend(task(proposal), draft, request)
    assert mended is not None
    assert mended.program.tunable_values() == {"BLOCK": 64}
    smallest = Draft(at_block(64), draft.origin, "i", ())
    assert RulesCompiler().mend(task(proposal), smallest, request) is None


def test_the_rules_do_not_pretend_to_mend_wrong_values() -> None:
    complaint = Diagnostic(stage=Stage.CORRECTNESS, rule="wrong_values", message="wrong")
    request = RepairRequest(1, Status.INCORRECT, (complaint,), "mend it")
    proposal = Proposal(id="000-000", generation=0, move=Move.SEED, idea="i", bottleneck="memory")
    draft = Draft(scaled_relu_program(), Origin(kind="recipe", agent="rules"), "i", ())
    assert RulesCompiler().mend(task(proposal), draft, request) is None


def test_the_profiler_repeats_the_numbers_and_says_what_could_help() -> None:
    reading = RulesProfiler().read(member("a"), scene())
    assert (reading.bottleneck, reading.explanation) == ("memory", "k takes most of it")
    assert "fewer bytes" in reading.advice


def test_the_critic_counts_failures_and_flags_suspicious_wins() -> None:
    generation = [member("a"), member("b", status=Status.SUSPICIOUS), member("c", status=Status.INCORRECT)]
    critique = RulesCritic().critique(generation, generation[:1], stagnation=0, scene=scene())
    assert critique.suspicious == ("b",)
    assert any(lesson.startswith("1 of 3 ended as incorrect") for lesson in critique.lessons)
    assert not critique.stop


def test_the_critic_learns_which_value_the_fastest_share() -> None:
    generation = [member(f"c{i}", 10.0 + i, program=at_block(64 if i < 3 else 256)) for i in range(6)]
    lessons = RulesCritic().critique(generation, generation[:1], stagnation=0, scene=scene()).lessons
    assert any(lesson.startswith("BLOCK=64 is shared by the fastest") for lesson in lessons)


def test_the_critic_stops_near_the_floor_and_after_two_generations_without_gain() -> None:
    near = member("a", 5.1)
    assert "% of the floor" in RulesCritic().critique([near], [near], stagnation=0, scene=scene()).reason
    far = member("b")
    assert not RulesCritic().critique([far], [far], stagnation=1, scene=scene()).stop
    assert "no gain" in RulesCritic().critique([far], [far], stagnation=2, scene=scene()).reason
