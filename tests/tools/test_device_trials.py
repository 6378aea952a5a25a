"""Trials drawn on a device: their values, the graph as an oracle, and what the verifier makes of them.

The device here is the simulator with torch's CPU tensors; tests/gpu runs the same on a GPU.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from memory.records import DType, Graph, Node, SpecialArgument, Status, TensorSpec
from tests.cases import scaled_relu_case
from tests.problems import KERNEL, scaled_relu_problem, scaled_relu_program
from tests.tools.test_racing import ScriptedRacer
from tools.arrays import Array, array_from, laid_out, tensor_from
from tools.baselines import measured_baselines
from tools.case import Case
from tools.correctness import Tolerance
from tools.device_trials import DeviceTrial, DeviceTrials, draw_on_device
from tools.devices.port import Baselines, CompileMode, Contest, Device, Fault, Given, Loaded, Ran
from tools.evaluation import check_trials, evaluate
from tools.inputs import Distribution, draw_floats
from tools.trial import Manifest, Trial, write_array, write_manifest
from tools.trial_cache import TrialCache

CPU = torch.device("cpu")


class DrawingRacer(ScriptedRacer):
    """The simulator as a device that draws trials itself, with scripted times."""

    place = CPU

    def upload(self, array: Array, dtype: DType) -> torch.Tensor:
        return tensor_from(np.array(array), dtype)

    def release(self) -> None:
        """Nothing is kept."""

    def run_tensors(self, loaded: Loaded, given: Given, *, sanitize: bool) -> Ran | Fault:
        arrays = {
            name: array_from(value.contiguous()) if isinstance(value, torch.Tensor) else value
            for name, value in given.items()
        }
        executed = loaded.execute(arrays, sanitize=sanitize)
        if isinstance(executed, Fault):
            return executed
        return Ran({n: torch.from_numpy(a) for n, a in executed.results.items()}, executed.warnings)

    def _result(self, loaded: Loaded, given: Mapping[str, object]) -> dict[str, object]:  # type: ignore[override]
        ran = self.run_tensors(loaded, given, sanitize=False)  # type: ignore[arg-type]
        assert isinstance(ran, Ran)
        return {name: tensor + self.spoil for name, tensor in ran.results.items()}

    def baselines(self, contest: Contest, modes: tuple[CompileMode, ...]) -> Baselines:
        self.contest = contest
        return Baselines((), dict.fromkeys(modes, "scripted"))


class KeepingRacer(DrawingRacer):
    """Keeps uploads as a GPU does."""

    def __init__(self, inner: Device) -> None:
        super().__init__(inner)
        self.kept: dict[int, torch.Tensor] = {}

    def upload(self, array: Array, dtype: DType) -> torch.Tensor:
        return self.kept.setdefault(id(array), super().upload(array, dtype))


def drawn_case(folder: Path, rows: int = 67, columns: int = 40) -> Case:
    """Module trials at 33 x 40, drawn ones at the full shape."""
    case = scaled_relu_case(folder, scaled_relu_problem(rows, columns), scaled_relu_problem())
    kinds = (Distribution.AUTHOR, Distribution.NORMAL, Distribution.SPECIAL)
    drawn = tuple(DeviceTrial(i, kind, case.trials[0], move_weights=i > 0) for i, kind in enumerate(kinds))
    return replace(case, drawn=drawn)


def test_a_case_builds_its_graphs_callables_once_and_leaves_them_behind_when_it_travels(
    simulated_h200: Device, tmp_path: Path
) -> None:
    case = drawn_case(tmp_path)
    device = DrawingRacer(simulated_h200)
    maker = case.drawer(device)
    assert case.drawer(DrawingRacer(simulated_h200)) is maker and replace(case).drawer(device) is not maker
    assert case.problem_hash == case.problem.content_hash()
    sent = pickle.loads(pickle.dumps(case))
    assert sent == case and sent.problem_hash == case.problem_hash
    assert sent.drawer(device) is not maker


# --- values ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("distribution", [d for d in Distribution if d is not Distribution.AUTHOR])
@pytest.mark.parametrize("dtype", [DType.F32, DType.F16, DType.F64, DType.BF16])
def test_a_distribution_looks_the_same_on_the_host_and_on_the_device(
    distribution: Distribution, dtype: DType
) -> None:
    here = draw_floats((8192, 16), dtype, distribution, np.random.default_rng(1))
    there = draw_on_device((8192, 16), dtype, distribution, torch.Generator().manual_seed(1))
    mine, theirs = there.double().numpy(), torch.from_numpy(here).to(there.dtype).double().numpy()
    assert np.isnan(mine).any() == np.isnan(theirs).any()
    assert np.isinf(mine).any() == np.isinf(theirs).any()
    sizes = [np.abs(v[np.isfinite(v)]) for v in (mine, theirs)]
    for quantile in (0.25, 0.75, 0.9, 0.99):
        first, second = (float(np.quantile(size, quantile)) for size in sizes)
        assert first == pytest.approx(second, rel=0.25, abs=1e-6)
    if distribution is Distribution.SORTED:
        assert (np.diff(mine, axis=-1) >= 0).all()
    if distribution is Distribution.CONSTANT_ROWS:
        assert (mine == mine[:, :1]).all()


def test_a_trial_repeats_and_another_seed_differs(tmp_path: Path) -> None:
    case = drawn_case(tmp_path)
    maker = DeviceTrials(case.problem.graph, CPU)
    base = case.trials[0].load()
    trial = case.drawn[1]
    first, again = maker.draw(trial, base), maker.draw(trial, base)
    other = maker.draw(replace(trial, seed=99), base)
    assert first["x"].shape == (67, 40)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["x"], other["x"])
    assert not torch.equal(first["weight"], other["weight"]), "weights must move with the seed"
    kept = maker.draw(replace(trial, move_weights=False), base)["weight"]
    assert np.array_equal(kept.numpy(), base.state["weight"])


def test_weights_that_every_trial_starts_from_are_brought_to_the_device_once(
    simulated_h200: Device, tmp_path: Path
) -> None:
    case, device = drawn_case(tmp_path), KeepingRacer(simulated_h200)
    cache, maker = TrialCache(), case.drawer(device)
    drawn = [maker.draw(trial, cache.load(trial.base)) for trial in case.drawn]
    assert len(device.kept) == 1
    assert not torch.equal(drawn[0]["weight"], drawn[1]["weight"])
    held = cache.load(case.trials[0]).state["weight"]
    assert np.array_equal(device.upload(held, DType.F32).numpy(), held), "moving must not change what is kept"


def test_the_authors_values_and_integer_ranges_are_kept(tmp_path: Path) -> None:
    spec = {"x": TensorSpec.dense((50, 60), DType.F32), "i": TensorSpec.dense((500,), DType.I64)}
    graph = Graph(values={**spec, "y": spec["x"]}, inputs=("x", "i"), nodes=(_relu("x"),), outputs=("y",))
    maker = DeviceTrials(graph, CPU)
    base = _base(tmp_path, x=np.array([[0.25, 7.0]], np.float32), i=np.array([3, 9]))
    drawn = maker.draw(DeviceTrial(5, Distribution.AUTHOR, base), base.load())
    assert set(drawn["x"].reshape(-1).tolist()) == {0.25, 7.0}
    assert (int(drawn["i"].min()), int(drawn["i"].max())) == (3, 9)


def test_strides_and_broadcast_dimensions_are_those_of_the_graph(tmp_path: Path) -> None:
    column = TensorSpec(shape=(6, 5), dtype=DType.F32, strides=(1, 6))
    spread = TensorSpec(shape=(6, 5), dtype=DType.F32, strides=(0, 1))
    graph = Graph(
        values={"x": column, "b": spread, "y": column}, inputs=("x", "b"), nodes=(_relu("x"),), outputs=("y",)
    )
    base = _base(tmp_path, x=np.zeros((6, 5), np.float32), b=np.zeros((6, 5), np.float32))
    drawn = DeviceTrials(graph, CPU).draw(DeviceTrial(1, Distribution.NORMAL, base), base.load())
    assert (drawn["x"].stride(), drawn["b"].stride()) == ((1, 6), (0, 1))
    assert torch.equal(drawn["b"][0], drawn["b"][5])
    assert torch.equal(laid_out(drawn["x"], column), drawn["x"])


# --- the oracle -----------------------------------------------------------------------------------------------


def test_a_graph_that_agrees_with_the_module_may_stand_for_it(tmp_path: Path) -> None:
    case = drawn_case(tmp_path)
    maker = DeviceTrials(case.twin.graph, CPU)
    assert [maker.disagreement(trial.load()) for trial in case.trials] == [None] * len(case.trials)


def test_a_graph_that_computes_something_else_may_not(tmp_path: Path) -> None:
    case = drawn_case(tmp_path)
    nodes = (
        case.twin.graph.nodes[0],
        case.twin.graph.nodes[1].model_copy(update={"op": "aten.gelu.default"}),
    )
    found = DeviceTrials(case.twin.graph.model_copy(update={"nodes": nodes}), CPU).disagreement(
        case.trials[0].load()
    )
    assert found is not None and "differs from the module's in float64" in found


def test_a_graph_that_cannot_be_run_in_float64_says_so(tmp_path: Path) -> None:
    case = drawn_case(tmp_path)
    nodes = (_relu("x"), Node(name="z", op="aten.bitwise_not.default", args=("y",), outputs=("z",)))
    spec = case.twin.graph.values["x"]
    graph = Graph(values={"x": spec, "y": spec, "z": spec}, inputs=("x",), nodes=nodes, outputs=("z",))
    found = DeviceTrials(graph, CPU).disagreement(case.trials[0].load())
    assert found is not None and "cannot be run in float64" in found


def test_narrow_dtypes_that_the_graph_asks_for_are_widened_in_the_oracle() -> None:
    spec, half = TensorSpec.dense((64,), DType.F32), TensorSpec.dense((64,), DType.F16)
    nodes = (
        Node(
            name="h",
            op="aten._to_copy.default",
            args=("x",),
            kwargs={"dtype": SpecialArgument(dtype=DType.F16)},
            outputs=("h",),
        ),
        Node(name="y", op="aten.exp.default", args=("h",), outputs=("y",)),
    )
    graph = Graph(values={"x": spec, "h": half, "y": half}, inputs=("x",), nodes=nodes, outputs=("y",))
    x = torch.randn(64, generator=torch.Generator().manual_seed(0))
    answers = DeviceTrials(graph, CPU).answers({"x": x})
    assert answers.eager["y"].dtype is torch.float16
    assert torch.equal(answers.oracle["y"], x.double().exp())


# --- verdicts -------------------------------------------------------------------------------------------------


def test_an_honest_program_passes_at_both_sizes(simulated_h200: Device, tmp_path: Path) -> None:
    case = drawn_case(tmp_path)
    racer = DrawingRacer(simulated_h200)
    evaluation = evaluate(scaled_relu_program(), case, racer)
    assert evaluation.status is Status.PASSED, evaluation.diagnostics
    told = {error.distribution for error in evaluation.errors}
    assert {"author at full size", "normal at full size", "special at full size", "normal"} <= told
    assert racer.contest is not None and len(racer.contest.givens) == 3
    assert all(given["x"].shape == (67, 40) for given in racer.contest.givens)


def test_an_error_that_only_the_full_size_shows_is_found(simulated_h200: Device, tmp_path: Path) -> None:
    source = KERNEL.replace("y[i] =", "y[i] = (i > 33 * 40) ? 1.0f :")
    case = drawn_case(tmp_path)
    evaluation = evaluate(scaled_relu_program(source), case, DrawingRacer(simulated_h200))
    assert evaluation.status is Status.INCORRECT
    assert "at full size" in evaluation.diagnostics[0].message
    assert (
        evaluate(scaled_relu_program(source), replace(case, drawn=()), simulated_h200).status is Status.PASSED
    )
    soaked = check_trials(scaled_relu_program(source), replace(case, trials=()), DrawingRacer(simulated_h200))
    assert soaked is not None and soaked.status is Status.INCORRECT
    assert check_trials(scaled_relu_program(), replace(case, trials=()), DrawingRacer(simulated_h200)) is None


def test_a_program_that_turns_wrong_while_timed_is_found_at_full_size(
    simulated_h200: Device, tmp_path: Path
) -> None:
    evaluation = evaluate(
        scaled_relu_program(), drawn_case(tmp_path), DrawingRacer(simulated_h200, spoil=1.0)
    )
    assert (evaluation.status, evaluation.diagnostics[0].rule) == (Status.SUSPICIOUS, "wrong_when_timed")


def test_a_program_that_ignores_its_weights_fails_where_they_move(
    simulated_h200: Device, tmp_path: Path
) -> None:
    case = drawn_case(tmp_path)
    weight = case.trials[0].load().state["weight"]
    held = ", ".join(f"{float(value)!r}f" for value in weight)
    source = f"__device__ const float held[] = {{{held}}};\n" + KERNEL.replace(
        "weight[i % COLS]", "held[i % COLS]"
    )
    soaked = check_trials(scaled_relu_program(source), replace(case, trials=()), DrawingRacer(simulated_h200))
    assert soaked is not None and soaked.status is not Status.PASSED


def test_baselines_are_measured_at_full_size_and_say_whether_the_graph_is_trusted(
    simulated_h200: Device, tmp_path: Path
) -> None:
    case = drawn_case(tmp_path)
    racer = DrawingRacer(simulated_h200)
    found = measured_baselines(case, racer, lambda trial: trial.load())
    assert found.untrusted is None and racer.contest is not None
    assert racer.contest.givens[0]["x"].shape == (67, 40)
    wrong = case.twin.graph.model_copy(update={"nodes": (case.twin.graph.nodes[0], _relu("x", "relu"))})
    twin = case.twin.model_copy(update={"graph": wrong})
    untrusted = measured_baselines(replace(case, twin=twin), racer, lambda trial: trial.load())
    assert untrusted.untrusted is not None and untrusted.times == ()


def test_tolerance_is_the_same_rule(tmp_path: Path) -> None:
    case = drawn_case(tmp_path)
    maker = DeviceTrials(case.problem.graph, CPU)
    given = maker.draw(case.drawn[1], case.trials[0].load())
    answers = maker.answers(given)
    close = {"relu": (answers.oracle["relu"] * (1 + 5e-7)).float()}
    far = {"relu": (answers.oracle["relu"] * (1 + 5e-6)).float()}
    assert maker.judge(answers, close, "t", Tolerance())[0].complaint is None
    assert maker.judge(answers, far, "t", Tolerance())[0].complaint is not None


def _base(folder: Path, **inputs: Array) -> Trial:
    """A trial that has inputs alone."""
    for name, array in inputs.items():
        write_array(folder / "inputs" / f"{name}.npy", array)
    manifest = Manifest(
        seed=0, distribution=Distribution.AUTHOR, inputs=tuple(inputs), state=(), expected=(), eager=()
    )
    write_manifest(folder, manifest)
    return Trial(0, Distribution.AUTHOR, folder)


def _relu(value: str, name: str = "y") -> Node:
    return Node(name=name, op="aten.relu.default", args=(value,), outputs=(name,))
