"""Trials from a real reference process: fresh weights, true float64, intact inputs, restarts."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from memory.errors import BadInput, CaptureFailed, WorkerLost
from memory.records import Problem, Target
from tests.tools.modules import target_of
from tools.arrays import as_float64
from tools.child import Limits
from tools.inputs import Distribution
from tools.problem import capture, parse_target
from tools.reference import Reference
from tools.trial import TrialData

LIMITS = Limits(threads=1)
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def captured(target: Target, reduce_above: int | None = None) -> Problem:
    found = capture(target, reduce_above=reduce_above, limits=LIMITS)
    return found.reduced or found.problem


@pytest.fixture(scope="module")
def example() -> Iterator[tuple[Problem, Reference]]:
    target = parse_target(str(EXAMPLES / "layernorm_gelu.py"))
    problem = captured(target, 20_000)
    with Reference(target, problem, limits=LIMITS) as reference:
        yield problem, reference


def draw(
    example: tuple[Problem, Reference],
    folder: Path,
    seed: int,
    distribution: Distribution = Distribution.NORMAL,
) -> TrialData:
    return example[1].trial(seed, distribution, folder / f"{seed}-{distribution}").load()


def test_a_trial_holds_what_the_graph_names(example: tuple[Problem, Reference], tmp_path: Path) -> None:
    data = draw(example, tmp_path, 0)
    graph = example[0].graph
    assert set(data.inputs) == set(graph.inputs) and set(data.state) == {e.value for e in graph.state}
    assert set(data.expected) == set(data.eager) == set(graph.outputs)
    assert data.inputs["x"].shape == graph.values["x"].shape
    assert data.expected["gelu"].dtype == np.float64 and data.eager["gelu"].dtype == np.float32


def test_the_oracle_agrees_with_a_hand_written_formula(
    example: tuple[Problem, Reference], tmp_path: Path
) -> None:
    data = draw(example, tmp_path, 1)
    x, weight, bias = (v.astype(np.float64) for v in (data.inputs["x"], *data.state.values()))
    centred = x - x.mean(-1, keepdims=True)
    y = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias
    # The error function by numerical integration would be slow: its odd Taylor series serves near zero.
    near = np.abs(y) < 0.5
    z = y[near] / np.sqrt(2)
    erf = (
        2 / np.sqrt(np.pi) * (z - z**3 / 3 + z**5 / 10 - z**7 / 42 + z**9 / 216 - z**11 / 1320 + z**13 / 9360)
    )
    np.testing.assert_allclose(data.expected["gelu"][near], 0.5 * y[near] * (1 + erf), rtol=0, atol=1e-9)


def test_weights_that_start_constant_still_vary_by_element_and_trial(
    example: tuple[Problem, Reference], tmp_path: Path
) -> None:
    first, second = (draw(example, tmp_path, seed).state for seed in (2, 3))
    for name in ("norm_weight", "norm_bias"):
        assert np.ptp(first[name].astype(np.float64)) > 0.5 and not np.array_equal(first[name], second[name])
    assert first["norm_weight"].astype(np.float64).min() > 0


def test_the_same_seed_repeats_in_a_fresh_process(example: tuple[Problem, Reference], tmp_path: Path) -> None:
    before = draw(example, tmp_path, 4)
    pid = example[1].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    after = draw(example, tmp_path / "again", 4)
    assert example[1].pid not in (None, pid)
    for name in before.state:
        assert np.array_equal(before.state[name], after.state[name])
    assert np.array_equal(before.inputs["x"], after.inputs["x"])


@pytest.mark.parametrize("distribution", list(Distribution))
def test_every_distribution_gives_a_finite_oracle(
    example: tuple[Problem, Reference], tmp_path: Path, distribution: Distribution
) -> None:
    finite = np.isfinite(draw(example, tmp_path, 5, distribution).expected["gelu"].astype(np.float64))
    # A NaN or an infinity spoils its own row of a layer norm, and no other.
    assert finite.all() or (distribution is Distribution.SPECIAL and finite.any(axis=-1).any())


def test_pinned_dtypes_statistics_constants_and_indices_are_handled(tmp_path: Path) -> None:
    init = "self.b = nn.BatchNorm1d(4)\nself.e = nn.Embedding(10, 4)\nself.k = torch.arange(4.0)"
    forward = (
        "h = torch.zeros(1, 4, dtype=torch.float32)\n"
        "y = self.b(x.float() + h) + self.e(i) * torch.tensor([1.0, 2.0, 3.0, 4.0]) + self.k\n"
        "return y.bfloat16(), y.argmax(-1)"
    )
    inputs = "[torch.randn(6, 4).bfloat16(), torch.randint(3, 10, (6,))]"
    target = target_of(tmp_path, forward, inputs, init=init, arguments="x, i")
    problem = captured(target)
    with Reference(target, problem, limits=LIMITS) as reference:
        data = reference.trial(0, Distribution.NORMAL, tmp_path / "trial").load()
    out, index = problem.graph.outputs
    assert data.inputs["x"].dtype == data.eager[out].dtype == np.uint16
    assert data.inputs["i"].min() >= 3 and data.inputs["i"].max() < 10
    assert data.expected[out].dtype == np.float64 and data.expected[index].dtype == np.int64
    error = np.abs(
        as_float64(data.eager[out], problem.graph.values[out].dtype) - data.expected[out].astype(np.float64)
    )
    assert 0 < error.max() < 0.1
    assert (data.state["b_running_var"].astype(np.float64) > 0).all()
    for before, after in problem.graph.updates.items():
        assert not np.array_equal(data.state[before], data.expected[after])


def test_a_transposed_input_of_a_twin_keeps_its_values(tmp_path: Path) -> None:
    target = target_of(tmp_path, "return x + 1", "[torch.rand(64, 128).t()]")
    problem = captured(target, 2000)
    assert problem.graph.values["x"].strides == (1, 8) or not problem.graph.values["x"].is_contiguous
    with Reference(target, problem, limits=LIMITS) as reference:
        data = reference.trial(0, Distribution.AUTHOR, tmp_path / "trial").load()
    np.testing.assert_allclose(
        data.expected["add"].astype(np.float64), data.inputs["x"].astype(np.float64) + 1
    )
    assert data.inputs["x"].astype(np.float64).min() >= 0


def test_a_module_that_cannot_run_in_double_is_refused_with_the_reason(tmp_path: Path) -> None:
    target = target_of(tmp_path, "assert x.dtype is torch.float32\nreturn x + 1", "[torch.randn(4)]")
    with (
        Reference(target, captured(target), limits=LIMITS) as reference,
        pytest.raises(BadInput, match="no oracle"),
    ):
        reference.trial(0, Distribution.NORMAL, tmp_path / "trial")
    assert not (tmp_path / "trial" / "trial.json").exists()


DIES_LATER = "import os\nif type(x) is torch.Tensor:\n    {act}\nreturn x + 1"


def test_a_module_that_dies_at_every_trial_loses_the_worker(tmp_path: Path) -> None:
    target = target_of(tmp_path, DIES_LATER.format(act="os._exit(9)"), "[torch.randn(4)]")
    with (
        Reference(target, captured(target), limits=LIMITS) as reference,
        pytest.raises(WorkerLost, match="status 9"),
    ):
        reference.trial(0, Distribution.NORMAL, tmp_path / "trial")


def test_a_trial_that_hangs_is_ended_at_the_deadline(tmp_path: Path) -> None:
    target = target_of(tmp_path, DIES_LATER.format(act="import time; time.sleep(99)"), "[torch.randn(4)]")
    with Reference(target, captured(target), limits=LIMITS, deadline_s=8) as reference:
        with pytest.raises(CaptureFailed, match=r"running forward .* after 8 s"):
            reference.trial(0, Distribution.NORMAL, tmp_path / "trial")
        assert reference.pid is None
