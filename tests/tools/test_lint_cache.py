"""The cache of findings: what its key covers, that it answers what the rules would, and what it does not keep."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from memory.records import Program, ScalarArgument
from tests.problems import KERNEL, scaled_relu_problem, scaled_relu_program, scaled_relu_step
from tools.binding import BoundPlan, bind
from tools.lint import Linted, LintFinding, lint_plan
from tools.lint_cache import LintCache, lint_key

FOUND = LintFinding("rule", "warning", 3, "message", "remedy")
WITH_SCALAR = KERNEL.replace("float* y)", "float* y, int rows)")
WARNED = KERNEL.replace("y[i] =", "float row = i / COLS; y[i] = row < 0.0f ? row :")
SEVERE = KERNEL.replace("float v =", "float w; float v = w + clock64() +")


def plan_of(program: Program | None = None, rows: int = 33) -> BoundPlan:
    return bind(program or scaled_relu_program(), scaled_relu_problem(rows))


def with_step(**changes: object) -> BoundPlan:
    return plan_of(scaled_relu_program(steps=(scaled_relu_step(**changes),)))


def scalar(value: str) -> BoundPlan:
    args = ("x", "weight", "y", ScalarArgument(value=value, ctype="int"))
    return plan_of(scaled_relu_program(WITH_SCALAR, steps=(scaled_relu_step(args=args),)))


class Counted:
    """Rules that say one thing and count how often they are asked."""

    def __init__(self, *, lasting: bool = True) -> None:
        self.asked = 0
        self._lasting = lasting

    def __call__(self, _plan: BoundPlan) -> Linted:
        self.asked += 1
        return Linted((FOUND,), self._lasting)


CHANGED: dict[str, Callable[[], BoundPlan]] = {
    "the source": lambda: plan_of(scaled_relu_program(KERNEL + "// more\n")),
    "a size": lambda: plan_of(rows=34),
    "a macro": lambda: dataclasses.replace(plan_of(), defines={**plan_of().defines, "ROWS": "32"}),
    "the grid": lambda: with_step(grid=("1", "1", "1")),
    "the block": lambda: with_step(block=("64", "1", "1")),
    "shared memory": lambda: with_step(shared_bytes="64"),
    "which tensor": lambda: with_step(args=("x", "x", "y")),
    "the order of launches": lambda: plan_of(
        scaled_relu_program(steps=(scaled_relu_step(grid=("1", "1", "1")), scaled_relu_step()))
    ),
    "the launches": lambda: plan_of(
        scaled_relu_program(steps=(scaled_relu_step(), scaled_relu_step(grid=("1", "1", "1"))))
    ),
    "a tensor's shape": lambda: dataclasses.replace(plan_of(), given=plan_of(rows=34).given),
    "a buffer's shape": lambda: dataclasses.replace(plan_of(), buffers=plan_of(rows=34).buffers),
    "a number given by value": lambda: scalar("ROWS"),
    "another number": lambda: scalar("COLS"),
}


def test_everything_that_findings_depend_on_changes_the_key() -> None:
    keys = {lint_key(plan_of()), *(lint_key(make()) for make in CHANGED.values())}
    assert len(keys) == len(CHANGED) + 1
    assert lint_key(plan_of()) == lint_key(plan_of())


@pytest.mark.parametrize("source", [KERNEL, WARNED, SEVERE])
def test_what_was_found_ahead_is_what_the_rules_say(tmp_path: Path, source: str) -> None:
    plan = plan_of(scaled_relu_program(source))
    said = lint_plan(plan)
    assert LintCache(tmp_path).findings(plan) == said
    silent = Counted()
    assert LintCache(tmp_path, lint=silent).findings(plan) == said
    assert silent.asked == 0


def test_findings_are_kept_for_every_process_and_for_their_own_plan_only(tmp_path: Path) -> None:
    rules = Counted()
    for _ in range(2):
        assert LintCache(tmp_path, lint=rules).findings(plan_of()) == (FOUND,)
    assert rules.asked == 1
    LintCache(tmp_path, lint=rules).findings(plan_of(rows=34))
    assert rules.asked == 2


def test_what_the_machine_prevented_is_found_again(tmp_path: Path) -> None:
    rules = Counted(lasting=False)
    for _ in range(2):
        assert LintCache(tmp_path, lint=rules).findings(plan_of()) == (FOUND,)
    assert rules.asked == 2


def test_a_damaged_entry_is_found_again(tmp_path: Path) -> None:
    cache, rules = LintCache(tmp_path), Counted()
    cache.findings(plan_of())
    [path] = tmp_path.rglob("*.entry")
    path.write_bytes(path.read_bytes().replace(b"[]", json.dumps([dataclasses.asdict(FOUND)]).encode()))
    assert LintCache(tmp_path).findings(plan_of()) == lint_plan(plan_of()) == ()
    path.write_bytes(path.read_bytes()[:-1])
    assert LintCache(tmp_path, lint=rules).findings(plan_of()) == (FOUND,)
