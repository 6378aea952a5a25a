"""The suite's own modules against the facts they were written from: shapes, parameters, operations."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUITE = ROOT / "benchmarks" / "suite"
FACTS: dict[str, dict[str, Any]] = json.loads((SUITE / "facts.json").read_text())["problems"]
DTYPES = {"float32": "f32", "int64": "i64", "bool": "bool"}
RENAMED = {
    "_native_batch_norm_legit_functional": "native_batch_norm",
    "_native_batch_norm_legit": "native_batch_norm",
    "_unsafe_view": "view",
}
"""Functional forms of a batch norm, and a view whose owner is known to be temporary: the same operations."""
SAME_OVERLOADS = frozenset(("no_stats",))
"""Of an instance norm, which eager runs as a batch norm of batch size 1."""
DROPOUT = ("bernoulli.float", "div.Scalar", "mul.Tensor")
MISSING = {
    # Eager also squeezes the indices of a 1-D max pool, which nobody reads.
    "level1/041_max_pool_1d": ("squeeze.dim",),
    "level2/055_matmul_max_pool_sum_scale": ("squeeze.dim",),
    # Nobody can judge an active dropout, so ours rests.
    "level2/066_matmul_dropout_softmax": DROPOUT,
    "level2/083_conv3d_group_norm_min_clamp_dropout": DROPOUT,
}
"""Operations of the facts that our modules do not do, and why."""
NOT_WORK = frozenset(("empty", "alias", "detach"))
"""An allocation (of cuDNN's reserve, on a GPU only) and names for a tensor that is already there."""
WHOLE = frozenset(("gru", "scaled_dot_product_attention"))
"""Composite operations that a capture keeps in one piece, because what they become differs by device."""


def operations(counts: dict[str, int]) -> Counter[str]:
    """Operations by name and overload, in-place ones as the functional ones that a capture makes of them."""
    found: Counter[str] = Counter()
    for op, count in counts.items():
        name, _, overload = op.removeprefix("aten.").partition(".")
        if name in RENAMED or (name.endswith("_") and not name.startswith("_")):
            name = RENAMED.get(name, name.rstrip("_"))
        if name not in NOT_WORK:
            found[f"{name}.{'default' if overload in ('', *SAME_OVERLOADS) else overload}"] += count
    return found


@cache
def captured(level: str) -> dict[str, dict[str, Any]]:
    """What one process found in all files of a level, by name."""
    names = [name for name in FACTS if name.startswith(level)]
    files = (f"{SUITE / name}.py" for name in names)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.captured", *files],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(names, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("name", FACTS)
def test_a_problem_has_the_shapes_and_parameters_of_its_facts(name: str) -> None:
    facts, found = FACTS[name], captured(name.split("/")[0])[name]
    for which in ("inputs", "outputs"):
        tensors = [spec for spec in facts[which] if isinstance(spec, list)]  # the others are numbers
        assert found[which] == [[shape, DTYPES[dtype]] for shape, dtype in tensors]
    assert found["parameters"] == facts["parameters"]
    assert found["init_inputs"] == facts["init_inputs"]


@pytest.mark.parametrize("name", FACTS)
def test_a_problem_does_the_operations_of_its_facts(name: str) -> None:
    wanted, found = operations(FACTS[name]["aten"]), operations(captured(name.split("/")[0])[name]["aten"])
    whole = [op for op in found if op.split(".")[0] in WHOLE]
    if whole:
        # Its parts are not to be seen here: shapes and parameters speak for it.
        assert found == Counter(whole)
    else:
        assert found == wanted - Counter(MISSING.get(name, ()))


def test_the_suite_has_all_of_two_levels_and_ten_of_the_third_and_says_where_its_facts_come_from() -> None:
    files = {str(path.relative_to(SUITE).with_suffix("")) for path in SUITE.rglob("*.py")}
    assert files == set(FACTS)
    assert Counter(name.split("/")[0] for name in FACTS) == {"level1": 100, "level2": 100, "level3": 10}
    for name, facts in FACTS.items():
        assert facts["entry"] in (SUITE / f"{name}.py").read_text().splitlines()[0]
    assert "KernelBench" in json.loads((SUITE / "facts.json").read_text())["source"]
