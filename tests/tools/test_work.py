"""Counted FLOPs and bytes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from memory.records import Argument, DType, Graph, Node, StateEntry, TensorSpec, Work
from tools.work import call_bytes, count_work, node_call, sequential_steps


def graph_of(
    shapes: Mapping[str, tuple[int, ...]], *nodes: Node, inputs: tuple[str, ...], state: str = ""
) -> Graph:
    entries = (StateEntry(value=state, target=state, kind="parameter"),) if state else ()
    last = nodes[-1].outputs[0]
    assert last is not None
    values = {name: TensorSpec.dense(shape, DType.F32) for name, shape in shapes.items()}
    return Graph(values=values, inputs=inputs, state=entries, nodes=nodes, outputs=(last,))


def node(name: str, *args: Argument) -> Node:
    return Node(name="y", op=f"aten.{name}.default", args=args, outputs=("y",))


def test_a_matrix_product_counts_two_for_each_multiply_add() -> None:
    graph = graph_of({"a": (3, 5), "b": (5, 7), "y": (3, 7)}, node("mm", "a", "b"), inputs=("a", "b"))
    assert count_work(graph) == Work(flops=2 * 3 * 5 * 7, min_bytes=4 * (15 + 35 + 21))


def test_a_grouped_convolution_counts_only_its_own_channels() -> None:
    call = node("convolution", "x", "w", None, (1, 1), (0, 0), (1, 1), False, (0, 0), 2)
    graph = graph_of({"x": (1, 4, 8, 8), "w": (6, 2, 3, 3), "y": (1, 6, 6, 6)}, call, inputs=("x", "w"))
    assert count_work(graph).flops == 2 * 6 * 36 * 2 * 9


def test_a_transposed_convolution_counts_from_its_input() -> None:
    call = node("convolution", "x", "w", None, (2,), (0,), (1,), True, (0,), 1)
    graph = graph_of({"x": (1, 4, 8), "w": (4, 6, 3), "y": (1, 6, 17)}, call, inputs=("x", "w"))
    assert count_work(graph).flops == 2 * 32 * 6 * 3


def test_attention_counts_both_products() -> None:
    shapes = {"q": (2, 8, 4), "k": (2, 6, 4), "v": (2, 6, 3), "y": (2, 8, 3)}
    graph = graph_of(shapes, node("scaled_dot_product_attention", "q", "k", "v"), inputs=("q", "k", "v"))
    assert count_work(graph).flops == 2 * 2 * 8 * 6 * (4 + 3)


def test_a_pointwise_operation_counts_one_for_each_element_and_a_copy_none() -> None:
    assert count_work(graph_of({"x": (4, 5), "y": (4, 5)}, node("relu", "x"), inputs=("x",))).flops == 20
    assert count_work(graph_of({"x": (4, 5), "y": (4, 5)}, node("clone", "x"), inputs=("x",))).flops == 0


def test_an_embedding_reads_only_the_rows_it_takes() -> None:
    graph = graph_of(
        {"w": (1000, 8), "i": (3,), "y": (3, 8)}, node("embedding", "w", "i"), inputs=("i",), state="w"
    )
    assert count_work(graph).min_bytes == 4 * (24 + 3 + 24)


def test_a_slice_reads_only_its_part_and_an_unread_input_nothing() -> None:
    part = Node(name="s", op="aten.slice.Tensor", args=("x", 0, 0, 2), outputs=("s",))
    graph = graph_of(
        {"x": (100, 4), "unread": (9,), "s": (2, 4), "y": (2, 4)},
        part,
        node("relu", "s"),
        inputs=("x", "unread"),
    )
    assert count_work(graph).min_bytes == 4 * (8 + 8)


def test_a_view_of_an_input_writes_nothing() -> None:
    graph = graph_of({"x": (4, 5), "y": (20,)}, node("view", "x", (20,)), inputs=("x",))
    assert count_work(graph) == Work(flops=0, min_bytes=0)


@pytest.mark.parametrize(("name", "gates"), [("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)])
def test_a_recurrent_layer_counts_every_weight_once_a_step(name: str, gates: int) -> None:
    shapes = {"x": (5, 3, 6), "h": (1, 3, 8), "i": (gates * 8, 6), "r": (gates * 8, 8), "b": (gates * 8,)}
    tail: tuple[Argument, ...] = (("i", "r", "b", "b"), True, 1, 0.0, False, False, False)
    call = node(name, "x", "h", *tail)
    graph = graph_of({**shapes, "y": (5, 3, 8)}, call, inputs=tuple(shapes))
    assert count_work(graph).flops == 2 * 5 * 3 * gates * 8 * (6 + 8)
    assert sequential_steps(node_call(call, graph.values)) == 5


def test_causal_attention_counts_the_pairs_that_see_each_other() -> None:
    shapes = {"q": (2, 8, 4), "y": (2, 8, 4)}
    call = node("scaled_dot_product_attention", "q", "q", "q", None, 0.0, True)
    graph = graph_of(shapes, call, inputs=("q",))
    assert count_work(graph).flops == 2 * 2 * (8 * 9 // 2) * (4 + 4)


def test_a_tensor_that_comes_twice_is_read_once() -> None:
    graph = graph_of({"x": (4, 5), "y": (4, 5)}, node("mul", "x", "x"), inputs=("x",))
    assert call_bytes(node_call(graph.nodes[0], graph.values)) == 4 * (20 + 20)
    assert count_work(graph).min_bytes == 4 * (20 + 20)


def test_a_strided_window_reads_no_more_than_it_sees() -> None:
    call = node("convolution", "x", "w", None, (2, 2), (0, 0), (1, 1), False, (0, 0), 1)
    graph = graph_of({"x": (1, 4, 8, 8), "w": (6, 4, 1, 1), "y": (1, 6, 4, 4)}, call, inputs=("x", "w"))
    assert count_work(graph).min_bytes == 4 * (256 // 4 + 24 + 96)


def test_an_operation_that_needs_a_shape_alone_reads_nothing() -> None:
    graph = graph_of({"x": (4, 5), "y": (4, 5)}, node("zeros_like", "x"), inputs=("x",))
    assert count_work(graph) == Work(flops=0, min_bytes=4 * 20)
