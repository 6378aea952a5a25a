"""What a run's past says to its models: which failures, which move of which model paid, and what it cost."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.schemas import ArmOutcome, Move
from graph.learning import FAILURES_SHOWN, arm_outcomes, failures
from memory.events import AgentEvent, EvaluatedCandidate
from memory.records import Candidate, Origin, Status
from tests.memory import made


def row(
    name: str,
    median_us: float | None = None,
    *,
    generation: int = 1,
    move: str | None = "improve",
    model: str = "m",
    judged: bool = True,
    status: Status = Status.INCORRECT,
) -> EvaluatedCandidate:
    """A candidate of a model's, or of the rules where it has no move; it failed where it has no time."""
    origin = Origin(kind="model" if move else "recipe", agent="a", detail=model, move=move)
    candidate = made.candidate(f"run-{name}", name, generation=generation).model_copy(
        update={"origin": origin, "idea": f"idea of {name}"}
    )
    Candidate.model_validate(candidate.model_dump())
    evaluation = made.evaluation(name, median_us=median_us, status=status) if judged else None
    return EvaluatedCandidate(candidate, evaluation)


def call(
    name: str, *, role: str = "coder", tokens: int | None = 1000, cost: float | None = 0.25
) -> AgentEvent:
    """A model's call for a candidate."""
    return made.event(f"{name}/{role}/{tokens}/{cost}", tokens=tokens or 0).model_copy(
        update={"role": role, "candidate_id": f"run-{name}", "tokens_in": tokens, "cost_usd": cost}
    )


SEED = row("000-000", 40.0, generation=0, move=None)


# --- failures -------------------------------------------------------------------------------------------------


def test_failures_of_earlier_generations_are_told_with_their_reason() -> None:
    rows = [SEED, row("000-001", generation=0, move=None), row("001-000", status=Status.COMPILE_ERROR)]
    (first, second) = failures(rows, 2)
    assert (first.candidate_id, first.idea, first.status, first.why) == (
        "run-000-001", "idea of 000-001", Status.INCORRECT, "output 0 is off",
    )  # fmt: skip
    assert second.status is Status.COMPILE_ERROR


def test_what_passed_what_is_not_judged_and_what_is_of_this_generation_is_no_failure() -> None:
    rows = [SEED, row("001-000", judged=False), row("002-000", generation=2), row("003-000", generation=3)]
    assert failures(rows, 2) == ()


def test_only_the_newest_failures_are_told_oldest_first() -> None:
    rows = [row(f"000-{i:03d}", generation=0) for i in range(40)]
    told = [failure.candidate_id for failure in failures(rows, 1)]
    assert told == [f"run-000-{i:03d}" for i in range(40 - FAILURES_SHOWN, 40)]


# --- gains ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("median_us", "gain"), [(20.0, math.log(2)), (40.0, 0.0), (80.0, 0.0), (None, 0.0)], ids=str
)
def test_a_gain_is_over_the_best_time_before_the_generation(median_us: float | None, gain: float) -> None:
    (outcome,) = arm_outcomes([SEED, row("001-000", median_us)], (), 2)
    assert (outcome.model, outcome.move) == ("m", Move.IMPROVE)
    assert outcome.gain == pytest.approx(gain)


def test_siblings_of_a_generation_do_not_count_against_each_other() -> None:
    rows = [SEED, row("001-000", 20.0), row("001-001", 10.0, move="write", model="n")]
    assert [(o.model, o.move, round(o.gain, 3)) for o in arm_outcomes(rows, (), 2)] == [
        ("m", Move.IMPROVE, round(math.log(2), 3)),
        ("n", Move.WRITE, round(math.log(4), 3)),
    ]


def test_a_mended_program_counts_for_the_move_that_it_mends() -> None:
    rows = [SEED, row("001-001"), row("001-001-r1", move="repair"), row("001-001-r2", 10.0, move="repair")]
    (outcome,) = arm_outcomes(rows, (), 2)
    assert outcome.move is Move.IMPROVE and outcome.gain == pytest.approx(math.log(4))


def test_a_neighbour_in_the_numbers_is_no_mended_program() -> None:
    rows = [SEED, row("001-001"), row("001-0011", 10.0, move="write")]
    assert arm_outcomes(rows, (), 2)[0].gain == 0.0


def test_moves_of_the_rules_and_of_this_generation_are_no_arms() -> None:
    rows = [SEED, row("001-000", 10.0, move=None), row("002-000", 10.0, generation=2)]
    assert arm_outcomes(rows, (), 2) == ()


def test_where_nothing_passed_before_there_is_nothing_to_gain_over() -> None:
    rows = [row("000-000", generation=0, move=None), row("001-000", 10.0)]
    assert arm_outcomes(rows, (), 2)[0].gain == 0.0


# --- costs ----------------------------------------------------------------------------------------------------


def cost(*events: AgentEvent) -> float:
    (outcome,) = arm_outcomes([SEED, row("001-000", 20.0)], events, 2)
    return outcome.cost


def test_a_proposal_costs_what_its_coder_and_its_compiler_cost() -> None:
    assert cost() == 0.0
    assert cost(call("001-000"), call("001-000", role="compiler", cost=0.5)) == 0.75


def test_calls_for_others_and_for_the_whole_generation_cost_it_nothing() -> None:
    shared = [call("001-000", role=role) for role in ("planner", "critic", "profiler")]
    assert cost(call("001-001"), call("001-0001"), *shared, call("001-000", cost=0.1)) == 0.1


def test_where_a_price_is_unknown_tokens_are_the_cost() -> None:
    events = [call("001-000", tokens=500_000, cost=None), call("001-000", role="compiler", tokens=250_000)]
    assert cost(*events) == pytest.approx(1.5)


def test_a_call_that_failed_has_no_price_to_be_unknown() -> None:
    down = call("001-000", tokens=None, cost=None).model_copy(update={"tokens_out": None})
    assert cost(down, call("001-000", cost=0.1)) == 0.1


def test_an_answer_that_led_to_no_program_is_a_miss_that_was_paid_for() -> None:
    barren = call("001-003", cost=0.5).model_copy(update={"move": "write", "model": "n"})
    mended = call("001-000").model_copy(update={"move": "improve", "model": "m"})
    unanswered = call("001-004", tokens=None, cost=None).model_copy(
        update={"tokens_out": None, "move": "write", "model": "n"}
    )
    outcomes = arm_outcomes([SEED, row("001-000", 20.0)], [barren, mended, unanswered], 2)
    assert [(o.model, o.move, o.cost) for o in outcomes] == [
        ("m", Move.IMPROVE, 0.25),
        ("n", Move.WRITE, 0.5),
    ]
    assert outcomes[1].gain == 0.0


def test_one_unknown_price_makes_tokens_the_measure_of_every_proposal() -> None:
    rows = [SEED, row("001-000", 20.0), row("001-001", 20.0)]
    events = [call("001-000", tokens=500_000, cost=0.5), call("001-001", tokens=100_000, cost=None)]
    assert [o.cost for o in arm_outcomes(rows, events, 2)] == pytest.approx([1.0, 0.2])


times = st.none() | st.floats(0.1, 1e6)


@given(
    st.lists(st.tuples(st.integers(0, 4), times, st.sampled_from([None, "write", "combine", "repair"])), max_size=12),
    st.integers(0, 5),
)  # fmt: skip
def test_every_gain_is_at_least_0_and_finite_and_every_arm_is_of_the_past(
    plan: list[tuple[int, float | None, str | None]], generation: int
) -> None:
    rows = [row(f"{g:03d}-{i:03d}", t, generation=g, move=m) for i, (g, t, m) in enumerate(plan)]
    outcomes = arm_outcomes(rows, (), generation)
    proposed = [r for r in rows if r.candidate.origin.move in ("write", "combine")]
    assert len(outcomes) == sum(r.candidate.generation < generation for r in proposed)
    assert all(isinstance(o, ArmOutcome) and 0 <= o.gain < math.inf and o.cost == 0 for o in outcomes)
    assert len(failures(rows, generation)) <= FAILURES_SHOWN
