"""Null kernels fail on problems that can be judged, and are named on those that cannot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memory.records import DType, Graph, Node, TensorSpec
from tests.cases import scaled_relu_case
from tools.arrays import Array
from tools.correctness import Tolerance
from tools.inputs import Distribution
from tools.null_kernels import passing_null_kernels
from tools.trial import Manifest, Trial, write_array, write_manifest


def graph(shape: tuple[int, ...] = (4, 8), dtype: DType = DType.F32) -> Graph:
    spec = TensorSpec.dense(shape, dtype)
    node = Node(name="y", op="aten.some.default", args=("x",), outputs=("y",))
    return Graph(values={"x": spec, "y": spec}, inputs=("x",), nodes=(node,), outputs=("y",))


def trials(folder: Path, pairs: list[tuple[Array, Array]]) -> list[Trial]:
    """One trial for each (input, output)."""
    made: list[Trial] = []
    for seed, (x, y) in enumerate(pairs):
        place = folder / str(seed)
        write_array(place / "inputs" / "x.npy", x)
        expected = y.astype(np.float64) if y.dtype.kind == "f" else y
        write_array(place / "expected" / "y.npy", expected)
        write_array(place / "eager" / "y.npy", y)
        names = {"inputs": ("x",), "state": (), "expected": ("y",), "eager": ("y",)}
        write_manifest(place, Manifest(seed=seed, distribution=Distribution.NORMAL, **names))
        made.append(Trial(seed, Distribution.NORMAL, place))
    return made


def drawn(seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal((4, 8)).astype(np.float32)


def test_an_ordinary_problem_can_be_judged(tmp_path: Path) -> None:
    case = scaled_relu_case(tmp_path)
    assert passing_null_kernels(case.problem.graph, case.trials, Tolerance()) == []


@pytest.mark.parametrize(
    ("output", "named"),
    [
        (lambda x: x * 0, {"zeros", "the mean of the output everywhere", "the output of other inputs"}),
        (lambda x: x * 0 + 0.25, {"the mean of the output everywhere", "the output of other inputs"}),
        (lambda x: x, {"an input unchanged"}),
        (lambda x: np.tile(np.arange(8, dtype=np.float32), (4, 1)) + x * 0, {"the output of other inputs"}),
    ],
)
def test_a_problem_that_a_null_kernel_passes_is_named(
    tmp_path: Path, output: object, named: set[str]
) -> None:
    assert callable(output)
    made = trials(tmp_path, [(drawn(seed), output(drawn(seed))) for seed in range(3)])
    assert set(passing_null_kernels(graph(), made, Tolerance())) == named


def test_one_trial_on_which_the_null_kernel_fails_is_enough(tmp_path: Path) -> None:
    pairs = [(drawn(0), drawn(0)), (drawn(1), drawn(1)), (drawn(2), np.abs(drawn(2)))]
    assert passing_null_kernels(graph(), trials(tmp_path, pairs), Tolerance()) == []


def test_integer_outputs_are_held_against_null_kernels_too(tmp_path: Path) -> None:
    zeros = np.zeros((4, 8), np.int64)
    made = trials(tmp_path, [(zeros + seed, zeros) for seed in range(2)])
    assert "zeros" in passing_null_kernels(graph(dtype=DType.I64), made, Tolerance())


def test_a_single_number_is_not_called_degenerate_for_being_its_own_mean(tmp_path: Path) -> None:
    made = trials(tmp_path, [(drawn(seed), np.asarray(drawn(seed).sum(), np.float32)) for seed in range(3)])
    scalar = graph().model_copy(update={"values": {**graph().values, "y": TensorSpec.dense((), DType.F32)}})
    assert passing_null_kernels(scalar, made, Tolerance()) == []


def test_an_empty_output_is_not_called_degenerate(tmp_path: Path) -> None:
    empty = np.zeros((0, 8), np.float32)
    assert passing_null_kernels(graph((0, 8)), trials(tmp_path, [(empty, empty)]), Tolerance()) == []
