"""Behaviour: three measured numbers, and the grid they span."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.schemas import Member
from graph.behaviour import BINS, behaviour, cells, elites
from memory.records import Status, StepProfile
from tests.members import member
from tests.problems import scaled_relu_problem
from tools.gpus import gpu_named

PROBLEM = scaled_relu_problem()
H200 = gpu_named("h200")
LEAST = PROBLEM.work.min_bytes


def profiled(*steps: StepProfile, us: float = 10.0, name: str = "a") -> Member:
    """A member of these steps."""
    found = member(name, us)
    assert found.evaluation.profile is not None
    profile = found.evaluation.profile.model_copy(update={"steps": steps})
    return replace(found, evaluation=found.evaluation.model_copy(update={"profile": profile}))


def step(us: float = 10.0, *, dram: float = LEAST, **more: float | None) -> StepProfile:
    return StepProfile.model_validate(
        {
            "name": "k", "authored": True, "us": us, "limiter": "dram", "dram_bytes": dram, "flops": 0.0,
            **more,
        }
    )  # fmt: skip


def test_intensity_is_the_share_of_the_copy_bandwidth() -> None:
    half = H200.dram_gbps * 1e3 * 10.0 / 2
    found = behaviour(profiled(step(dram=half)).evaluation, PROBLEM, H200)
    assert found is not None and found.memory_intensity == pytest.approx(0.5)


def test_reuse_is_what_must_move_over_what_was_moved() -> None:
    twice = behaviour(profiled(step(dram=LEAST), step(dram=LEAST)).evaluation, PROBLEM, H200)
    once = behaviour(profiled(step(dram=LEAST)).evaluation, PROBLEM, H200)
    assert twice is not None and once is not None
    assert (once.reuse, twice.reuse) == (1.0, 0.5)


def test_parallelism_is_the_achieved_occupancy_where_it_was_counted_weighed_by_time() -> None:
    steps = (step(30.0, occupancy=0.5), step(10.0, occupancy=1.0, achieved_occupancy=0.1), step(99.0))
    found = behaviour(profiled(*steps).evaluation, PROBLEM, H200)
    assert found is not None and found.parallelism == pytest.approx((30 * 0.5 + 10 * 0.1) / 40)
    library = behaviour(profiled(step()).evaluation, PROBLEM, H200)
    assert library is not None and library.parallelism == 0.0


def test_a_failing_candidate_lies_nowhere() -> None:
    failed = member("f", status=Status.INCORRECT)
    assert behaviour(failed.evaluation, PROBLEM, H200) is None
    assert elites([failed], cells(PROBLEM, H200)) == []


@given(st.floats(0, 1e12), st.floats(1e-3, 1e6), st.floats(0, 1))
def test_every_passing_candidate_has_a_cell(dram: float, us: float, occupancy: float) -> None:
    cell = cells(PROBLEM, H200)(profiled(step(us, dram=dram, occupancy=occupancy), us=us))
    assert cell is not None
    assert all(0 <= axis < BINS for axis in (cell.memory_intensity, cell.parallelism, cell.reuse))


def test_a_cell_keeps_the_first_of_those_in_it() -> None:
    near, far = step(occupancy=0.9), step(occupancy=0.1)
    first, second = profiled(near, name="a"), profiled(near, name="b")
    other = profiled(far, name="c")
    assert elites([first, second, other], cells(PROBLEM, H200)) == [first, other]
