"""A problem in words."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from memory.records import Argument, DType, Graph, Node, Problem, StateEntry, TensorSpec
from memory.signature import problem_operations, problem_signature
from tests import strategies
from tests.memory import made


@pytest.mark.parametrize(
    ("op", "shape", "rest", "wanted"),
    [
        ("aten._softmax.default", (4096, 4096), (-1, False), "softmax over the last dimension, row-wise"),
        ("aten._softmax.default", (8, 16, 32), (2, False), "softmax over the last dimension"),
        ("aten._softmax.default", (8, 16, 32), (1, False), "softmax over dimension 1 of 3"),
        (
            "aten._log_softmax.default",
            (8, 16),
            (0, False),
            "log softmax over the first dimension, column-wise",
        ),
        ("aten.sum.default", (8, 16), (), "sum reduction over all dimensions"),
        ("aten.sum.dim_IntList", (8, 16, 4), ((0, -1), True), "sum reduction over dimensions 0 and 2 of 3"),
        ("aten.mean.dim", (8, 16, 4, 4), ((-1, -2),), "mean reduction over the last 2 dimensions"),
        ("aten.amax.default", (8,), ((0,),), "max reduction over the last dimension"),
        ("aten.max.other", (8,), ("x",), "max"),
        ("aten.cat.default", (8, 8), (), "cat along the first dimension"),
        ("aten.topk.default", (8, 8), (3,), "topk over the last dimension"),
        (
            "aten.native_layer_norm.default",
            (8, 16, 4),
            ((16, 4), None, None, 1e-5),
            "layer norm over the last 2 dim",
        ),
        ("aten.relu.default", (8, 16), (), "relu"),
    ],
)
def test_an_operation_says_along_which_dimensions_it_works(
    op: str, shape: tuple[int, ...], rest: tuple[Argument, ...], wanted: str
) -> None:
    assert problem_signature(made.problem(op, shape, *rest)).startswith(wanted)


def linear_twice() -> Problem:
    """Two linear layers of one shape, the second of strided weights in training."""
    x, w = TensorSpec.dense((16, 64), DType.BF16), TensorSpec.dense((64, 64), DType.BF16)
    turned = TensorSpec(shape=(64, 64), dtype=DType.BF16, strides=(1, 64))
    nodes = (
        Node(name="h", op="aten.mm.default", args=("x", "w"), outputs=("h",)),
        Node(name="r", op="aten.relu.default", args=("h",), outputs=("r",)),
        Node(name="y", op="aten.mm.default", args=("r", "v"), outputs=("y",)),
    )
    state = tuple(StateEntry(value=n, target=n, kind="parameter") for n in ("w", "v"))
    values = {"x": x, "w": w, "v": turned, "h": x, "r": x, "y": x}
    graph = Graph(values=values, inputs=("x",), state=state, nodes=nodes, outputs=("y",))
    return made.problem().model_copy(update={"graph": graph, "training": True})


def test_a_signature_counts_operations_and_lists_tensors_and_the_mode() -> None:
    assert problem_signature(linear_twice()) == (
        "matmul x2, relu; dtype bf16; inputs bf16[16,64]; outputs bf16[16,64]; "
        "parameters bf16[64,64] bf16[64,64] strided; training mode; aten operations mm, relu"
    )
    assert problem_operations(linear_twice()) == ("mm", "relu")


@settings(max_examples=20, deadline=None)
@given(problem=strategies.problems)
def test_every_problem_has_a_signature_that_ignores_its_name_and_path(problem: Problem) -> None:
    moved = problem.model_copy(
        update={"name": "other", "target": problem.target.model_copy(update={"path": "/other"})}
    )
    assert problem_signature(moved) == problem_signature(problem)
    assert set(problem_operations(problem)) <= {"relu", "add", "_softmax"}


def test_a_long_graph_has_a_short_signature() -> None:
    nodes, previous = [], "x"
    for number in range(3000):
        nodes.append(
            Node(name=f"n{number}", op=f"aten.op{number}.x", args=(previous,), outputs=(f"n{number}",))
        )
        previous = f"n{number}"
    spec = TensorSpec.dense((2,), DType.F32)
    values = {"x": spec, **{node.name: spec for node in nodes}}
    graph = Graph(values=values, inputs=("x",), nodes=tuple(nodes), outputs=(previous,))
    text = problem_signature(made.problem().model_copy(update={"graph": graph}))
    assert len(text) < 2000
    assert "and 2960 more" in text
