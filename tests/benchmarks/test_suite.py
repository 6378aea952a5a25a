"""The suite's own modules against the facts they were written from: shapes, parameters, operations."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUITE = ROOT / "benchmarks" / "suite"
FACTS: dict[str, dict[str, Any]] = json.loads((SUITE / "facts.json").read_text())["problems"]
DTYPES = {"float32": "f32", "int64": "i64", "bool": "bool"}
RENAMED = {"_native_batch_norm_legit_functional": "native_batch_norm", "_unsafe_view": "view"}
"""The functional form of a batch norm, and a view whose owner is known to be temporary: the same operations."""
NOT_WORK = frozenset(("empty", "alias", "detach"))
"""An allocation (of cuDNN's reserve, on a GPU only) and names for a tensor that is already there."""
WHOLE = frozenset(("gru",))
"""Composite operations that a capture keeps in one piece, because what they become differs by device."""


def operations(counts: dict[str, int]) -> Counter[str]:
    """Operations by name and overload, in-place ones as the functional ones that a capture makes of them."""
    found: Counter[str] = Counter()
    for op, count in counts.items():
        name, _, overload = op.removeprefix("aten.").partition(".")
        if name in RENAMED or (name.endswith("_") and not name.startswith("_")):
            name = RENAMED.get(name, name.rstrip("_"))
        if name not in NOT_WORK:
            found[f"{name}.{overload or 'default'}"] += count
    return found


@pytest.fixture(scope="module")
def captured() -> dict[str, dict[str, Any]]:
    """What one process found in all files, by name."""
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "tests.benchmarks.captured",
            *(f"{SUITE / n}.py" for n in FACTS),
        ],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(FACTS, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("name", FACTS)
def test_a_problem_has_the_shapes_and_parameters_of_its_facts(
    captured: dict[str, dict[str, Any]], name: str
) -> None:
    facts, found = FACTS[name], captured[name]
    for which in ("inputs", "outputs"):
        assert found[which] == [[shape, DTYPES[dtype]] for shape, dtype in facts[which]]
    assert found["parameters"] == facts["parameters"]
    assert found["init_inputs"] == facts["init_inputs"]


@pytest.mark.parametrize("name", FACTS)
def test_a_problem_does_the_operations_of_its_facts(captured: dict[str, dict[str, Any]], name: str) -> None:
    wanted, found = operations(FACTS[name]["aten"]), operations(captured[name]["aten"])
    whole = [op for op in found if op.split(".")[0] in WHOLE]
    if whole:
        # Its parts are not to be seen here: shapes and parameters speak for it.
        assert found == Counter(whole)
    else:
        assert found == wanted


def test_the_suite_is_forty_problems_over_three_levels_and_says_where_its_facts_come_from() -> None:
    files = {str(path.relative_to(SUITE).with_suffix("")) for path in SUITE.rglob("*.py")}
    assert files == set(FACTS)
    assert Counter(name.split("/")[0] for name in FACTS) == {"level1": 16, "level2": 14, "level3": 10}
    for name, facts in FACTS.items():
        assert facts["entry"] in (SUITE / f"{name}.py").read_text().splitlines()[0]
    assert "KernelBench" in json.loads((SUITE / "facts.json").read_text())["source"]
