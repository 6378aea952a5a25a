"""The rebuilt graph equals the user's module, on the module's own inputs and weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from memory.errors import BadInput
from memory.records import DType, Graph, Node, Problem, Target, TensorSpec
from tests.tools.modules import target_of
from tools.arrays import Array, array_from, as_float64, tensor_from
from tools.child import Limits
from tools.eager_graph import EagerGraph, result_names
from tools.inputs import Distribution
from tools.problem import capture, parse_target
from tools.reference import Reference
from tools.trial import TrialData

LIMITS = Limits(threads=1)
EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))
CPU = torch.device("cpu")

pytestmark = pytest.mark.filterwarnings("ignore:RNN module weights are not part:UserWarning")


def judged(target: Target, folder: Path, reduce_above: int | None = None) -> tuple[Problem, TrialData]:
    found = capture(target, limits=LIMITS, reduce_above=reduce_above)
    problem = found.reduced or found.problem
    with Reference(target, problem, limits=LIMITS) as reference:
        return problem, reference.trial(3, Distribution.NORMAL, folder / "trial").load()


def placed(array: Array, spec: TensorSpec) -> torch.Tensor:
    tensor = tensor_from(array.copy(), spec.dtype)
    return (
        tensor
        if spec.is_contiguous
        else torch.empty_strided(spec.shape, spec.strides, dtype=tensor.dtype).copy_(tensor)
    )


def rebuilt(problem: Problem, data: TrialData) -> dict[str, torch.Tensor]:
    graph = problem.graph
    state = {name: placed(array, graph.values[name]) for name, array in data.state.items()}
    module = EagerGraph(graph, state, CPU)
    inputs = [placed(data.inputs[name], graph.values[name]) for name in graph.inputs]
    with torch.no_grad():
        return dict(zip(result_names(graph), module(*inputs), strict=True))


def assert_equals_eager(target: Target, folder: Path, reduce_above: int | None = None) -> None:
    problem, data = judged(target, folder, reduce_above)
    made = rebuilt(problem, data)
    assert set(made) == set(data.eager)
    for name, tensor in made.items():
        dtype = problem.graph.values[name].dtype
        mine, theirs = (as_float64(a, dtype) for a in (array_from(tensor.contiguous()), data.eager[name]))
        assert mine.shape == theirs.shape
        torch.testing.assert_close(
            torch.from_numpy(mine), torch.from_numpy(theirs), rtol=1e-5, atol=1e-6, equal_nan=True
        )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_is_rebuilt(path: Path, tmp_path: Path) -> None:
    assert_equals_eager(parse_target(str(path)), tmp_path, 1 << 18)


MODULES = {
    "batch_norm_in_training": ("self.b = nn.BatchNorm2d(4)", "return F.relu(self.b(x))", "2, 4, 5, 5"),
    "convolution": (
        "self.c = nn.Conv2d(3, 4, 3, padding=1)",
        "return F.max_pool2d(self.c(x), 2)",
        "2, 3, 8, 8",
    ),
    "lstm": ("self.l = nn.LSTM(8, 6, batch_first=True)", "y, _ = self.l(x)\nreturn y", "2, 5, 8"),
    "attention": ("pass", "return F.scaled_dot_product_attention(x, x, x, is_causal=True)", "2, 2, 8, 4"),
    "several_outputs": ("pass", "a, b = x.split(3, dim=1)\nreturn a.exp(), b.t() + 1", "4, 6"),
    "constants_and_masks": (
        "self.register_buffer('m', torch.eye(6) > 0)",
        "return x.masked_fill(self.m, float('-inf')).softmax(-1) + torch.ones(6, device=x.device)",
        "6, 6",
    ),
    "group_norm_and_mixed_types": (
        "self.g = nn.GroupNorm(2, 4)",
        "y = self.g(x)\nreturn y.to(torch.bfloat16), y.argmax(1)",
        "2, 4, 3",
    ),
}


@pytest.mark.parametrize("kind", MODULES)
def test_a_module_is_rebuilt(kind: str, tmp_path: Path) -> None:
    init, forward, shape = MODULES[kind]
    assert_equals_eager(target_of(tmp_path, forward, f"[torch.randn({shape})]", init=init), tmp_path)


def test_batch_norm_returns_its_new_statistics(tmp_path: Path) -> None:
    init, forward, shape = MODULES["batch_norm_in_training"]
    problem, data = judged(target_of(tmp_path, forward, f"[torch.randn({shape})]", init=init), tmp_path)
    made = rebuilt(problem, data)
    assert len(problem.graph.updates) == 3
    for before, after in problem.graph.updates.items():
        assert not torch.equal(made[after].double(), torch.from_numpy(data.state[before].copy()).double())


def test_a_graph_that_names_a_forbidden_operation_is_refused() -> None:
    spec = TensorSpec.dense((2,), DType.F32)
    node = Node(name="y", op="aten.empty_like.default", args=("x",), outputs=("y",))
    graph = Graph(values={"x": spec, "y": spec}, inputs=("x",), nodes=(node,), outputs=("y",))
    with pytest.raises(BadInput, match="may not be called"):
        EagerGraph(graph, {}, CPU)
