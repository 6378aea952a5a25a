"""The recorded situations: the verifier still says the same of each, and the prompts say what a reader needs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from agents.endpoint import Role
from benchmarks.agents import kernels, problems
from benchmarks.agents.asked import TOLD, prompt_about, prompt_on, told_in
from benchmarks.agents.evaluate import main, score_of, scores_of, table
from benchmarks.agents.generations import GENERATIONS
from benchmarks.agents.record import RECORDED, Recording, judged, keep, read, recording_of
from benchmarks.agents.situations import SITUATIONS
from memory.records import Diagnostic, Evaluation, Problem, Program, Status
from tests.problems import scaled_relu_program
from tools.devices.port import Device
from tools.evaluation import evaluate
from tools.gpus import gpu_named

HONEST: dict[str, tuple[Problem, Program]] = {
    "relu": (problems.scaled_relu(), scaled_relu_program()),
    "relu_by_warps": (problems.scaled_relu(96, 40), kernels.relu_by_warps()),
    "mean_by_block": (problems.row_mean(), kernels.mean()),
    "mean_by_warp": (problems.row_mean(), kernels.mean_by_warp()),
    "softmax": (problems.softmax(), kernels.softmax()),
    "transpose": (problems.transpose(), kernels.transpose()),
    "half_sum": (problems.half_sum(), kernels.half_sum()),
}
"""What the flawed programs are without their flaw."""


def blank(evaluation: Evaluation) -> Evaluation:
    """The verdict with everything that helps taken out of it."""
    if evaluation.profile is not None:
        steps = tuple(
            step.model_copy(
                update={
                    "name": "kernel",
                    "limiter": "",
                    "occupancy": None,
                    "bank_conflicts": None,
                    "load_sectors_per_request": None,
                    "store_sectors_per_request": None,
                }
            )
            for step in evaluation.profile.steps
        )
        profile = evaluation.profile.model_copy(update={"steps": steps, "explanation": "It is slow."})
        return evaluation.model_copy(update={"profile": profile, "diagnostics": ()})
    stage = evaluation.diagnostics[0].stage
    vague = Diagnostic(stage=stage, rule="failed", message="It failed.")
    return evaluation.model_copy(update={"diagnostics": (vague,), "errors": ()})


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_verifier_still_says_what_was_recorded(name: str, simulated_h200: Device, tmp_path: Path) -> None:
    situation, recorded = SITUATIONS[name], read(name)
    evaluation = judged(situation, simulated_h200, tmp_path)
    first = evaluation.diagnostics[0].rule if evaluation.diagnostics else None
    assert (evaluation.status, first) == (situation.status, situation.rule), evaluation.diagnostics
    assert recorded.evaluation.status is evaluation.status
    assert recorded.evaluation.stage is evaluation.stage
    assert [d.rule for d in recorded.evaluation.diagnostics] == [d.rule for d in evaluation.diagnostics]
    # What the verifier says now has the facts too, whatever the recording says.
    for score in scores_of(situation, recording_of(situation, evaluation)):
        assert not score.missing, (score.role, evaluation.diagnostics)


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_recording_is_of_the_situation_as_it_is_now(name: str) -> None:
    situation, recorded = SITUATIONS[name], read(name)
    assert recorded.program == situation.program
    assert recorded.problem == situation.problem
    assert recorded.twin == situation.twin
    assert recorded.flaw == situation.flaw


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_prompt_says_what_a_reader_needs(name: str) -> None:
    scores = scores_of(SITUATIONS[name], read(name))
    assert scores or SITUATIONS[name].status is Status.SUSPICIOUS
    for score in scores:
        assert not score.missing, score
        assert score.present


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_fact_that_is_taken_out_of_the_verdict_is_missed(name: str) -> None:
    situation, recorded = SITUATIONS[name], read(name)
    damaged = recorded.model_copy(update={"evaluation": blank(recorded.evaluation)})
    for score in scores_of(situation, damaged):
        assert score.missing, score


@pytest.mark.parametrize("name", SITUATIONS)
def test_no_fact_is_found_where_its_words_are_not(name: str) -> None:
    situation, recorded = SITUATIONS[name], read(name)
    for role in situation.roles:
        told = " ".join(told_in(prompt_about(recorded, role)).split())
        for fact in situation.facts:
            if role in fact.roles:
                assert fact.told_in(told)
                assert not fact.told_in(re.sub(fact.pattern, "", told)), fact


def test_every_fact_belongs_to_a_prompt_of_its_situation() -> None:
    for situation in SITUATIONS.values():
        for fact in situation.facts:
            assert set(fact.roles) <= set(situation.roles), (situation.name, fact)


@pytest.mark.parametrize("name", HONEST)
def test_the_same_program_without_its_flaw_passes(name: str, simulated_h200: Device, tmp_path: Path) -> None:
    problem, program = HONEST[name]
    case = problems.case_of(problem, None, gpu_named("h200"), tmp_path)
    evaluation = evaluate(program, case, simulated_h200)
    assert evaluation.status is Status.PASSED, evaluation.diagnostics


@pytest.mark.parametrize("name", GENERATIONS)
def test_the_critic_is_told_what_it_needs_on_a_generation(name: str) -> None:
    score = score_of(GENERATIONS[name])
    assert score.role == "critic" and score.present and not score.missing, score


@pytest.mark.parametrize("name", GENERATIONS)
def test_every_fact_about_a_verdict_of_a_generation_is_missed_where_the_verdicts_say_nothing(
    name: str, tmp_path: Path
) -> None:
    generation = GENERATIONS[name]
    for one in (*generation.tried, *generation.survivors):
        recorded = read(one.recorded)
        keep(recorded.model_copy(update={"evaluation": blank(recorded.evaluation)}), tmp_path)
    assert score_of(generation, tmp_path).missing


@pytest.mark.parametrize("name", GENERATIONS)
def test_no_fact_of_a_generation_is_found_where_its_words_are_not(name: str) -> None:
    told = " ".join(told_in(prompt_on(GENERATIONS[name])).split())
    for fact in GENERATIONS[name].facts:
        assert fact.told_in(told)
        assert not fact.told_in(re.sub(fact.pattern, "", told)), fact


def test_a_generation_is_of_one_problem_and_its_ideas_do_not_name_a_flaw() -> None:
    for generation in GENERATIONS.values():
        recorded = [read(one.recorded) for one in (*generation.tried, *generation.survivors)]
        assert len({r.problem.content_hash() for r in recorded}) == 1, generation.name
        # What is told of a candidate is its verdict: the critic gets no program.
        assert all(r.program.source not in prompt_on(generation).user for r in recorded)
    told = {one.recorded for generation in GENERATIONS.values() for one in generation.tried}
    assert {name for name, found in SITUATIONS.items() if found.status is Status.SUSPICIOUS} <= told


def test_situations_cover_every_kind_of_verdict_that_is_mended_the_slow_and_the_suspicious() -> None:
    found = {situation.status for situation in SITUATIONS.values()}
    assert found == {
        Status.PASSED,
        Status.SCHEMA_ERROR,
        Status.LINT_ERROR,
        Status.COMPILE_ERROR,
        Status.SANITIZER_ERROR,
        Status.INCORRECT,
        Status.SUSPICIOUS,
    }
    assert {path.stem for path in RECORDED.glob("*.json")} == set(SITUATIONS)


def test_a_program_is_not_taken_for_what_is_said_of_it() -> None:
    recorded = read("missing_barrier")
    prompt = prompt_about(recorded, Role.COMPILER)
    assert 'extern "C" __global__' in prompt.user
    assert 'extern "C" __global__' not in told_in(prompt)
    slow = prompt_about(read("bank_conflicts"), Role.CODER)
    assert "__shared__ float tile" in slow.user
    assert "__shared__ float tile" not in told_in(slow)


@pytest.mark.parametrize(("name", "role"), [("uncovered_tail", Role.CODER), ("low_occupancy", Role.PLANNER)])
def test_a_prompt_is_the_one_that_the_agent_would_send(name: str, role: Role) -> None:
    prompt = prompt_about(read(name), role)
    assert all(f"# {title}\n" in prompt.user for title in TOLD[role])
    assert "Text between `<<material ...>>`" in prompt.system


def test_an_agent_that_would_ask_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="compiler asks nothing"):
        prompt_about(read("low_occupancy"), Role.COMPILER)


def test_the_evaluation_fails_where_a_fact_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert not any(score["missing"] for score in whole)
    for name in SITUATIONS:
        recorded = read(name)
        if name == "missing_barrier":
            recorded = recorded.model_copy(update={"evaluation": blank(recorded.evaluation)})
        keep(recorded, tmp_path)
    assert main(["--recorded", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    (line,) = (line for line in said.splitlines() if line.startswith("| missing_barrier |"))
    assert "0/5" in line and "shared variable" in line


def test_the_table_counts_what_is_there() -> None:
    scores = scores_of(SITUATIONS["undeclared_name"], read("undeclared_name"))
    assert table(scores).endswith("3 of 3 facts in 1 prompts on 1 situations.")


def test_recording_again_changes_nothing_but_times(simulated_h200: Device, tmp_path: Path) -> None:
    situation = SITUATIONS["one_row_in_32"]
    first, second = (
        recording_of(situation, judged(situation, simulated_h200, tmp_path / which)) for which in "ab"
    )
    assert first.says_the_same(second)
    assert keep(first, tmp_path)
    assert not keep(second, tmp_path)
    assert read(situation.name, tmp_path) == first
    other = Recording.model_validate({**first.model_dump(), "flaw": "Another."})
    assert keep(other, tmp_path)
