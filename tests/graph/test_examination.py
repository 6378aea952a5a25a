"""A closer look at a winner, with a real case and a real simulator; GPU tools say here what they lack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import pytest

from agents.schemas import Member
from graph.context import RunContext
from graph.examination import examine
from memory.records import Status
from tests.graph.opened import judged, opened_run
from tests.problems import KERNEL, scaled_relu_program


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunContext]:
    """A run of the example module that nobody has searched yet."""
    with opened_run(tmp_path_factory.mktemp("examined")) as opened:
        yield opened


def remarks(context: RunContext, member: Member) -> list[str]:
    return [e.decision for e in context.store.events(context.run.id) if e.candidate_id == member.candidate.id]


def test_an_honest_winner_is_looked_at_by_every_tool_and_what_is_missing_is_said(context: RunContext) -> None:
    member = judged(context, scaled_relu_program(), "honest")
    assert member.evaluation.status is Status.PASSED
    steps: list[str] = []
    assert examine(member, context, steps.append) is None
    assert len(steps) == 3
    said = remarks(context, member)
    assert any("no access was out of bounds" in remark for remark in said)
    assert any("compute-sanitizer could not look" in remark and "is no GPU" in remark for remark in said)
    assert any(remark.startswith("no hardware counters") for remark in said)
    refined = context.member(member.candidate.id).evaluation.profile
    assert refined is not None and refined.counters_absent is not None
    assert refined.explanation and refined.floor_fraction == pytest.approx(
        member.evaluation.profile.floor_fraction if member.evaluation.profile else 0.0
    )


def test_a_winner_that_reads_behind_its_tensor_is_refuted(context: RunContext) -> None:
    source = KERNEL.replace("float v = x[i]", "float v = x[i + (i == ROWS * COLS - 1)]")
    member = judged(context, scaled_relu_program(source), "stray")
    fault = examine(member, context, lambda _: None)
    assert fault is not None and "scaled_relu" in fault.message
    assert remarks(context, member)[-1].startswith("refuted on the simulator")


def test_the_setting_says_who_looks(context: RunContext) -> None:
    member = judged(context, scaled_relu_program(), "honest")
    choices: tuple[tuple[Literal["none", "simulator"], int], ...] = (("none", 0), ("simulator", 1))
    for setting, count in choices:
        steps: list[str] = []
        chosen = replace(context, settings=context.settings.model_copy(update={"examine": setting}))
        assert examine(member, chosen, steps.append) is None
        assert len(steps) == count
