"""Counted FLOPs and bytes."""

from __future__ import annotations

from collections.abc import Mapping

from memory.records import DType, Graph, Node, StateEntry, TensorSpec, Work
from tools.work import count_work


def graph_of(
    shapes: Mapping[str, tuple[int, ...]], *nodes: Node, inputs: tuple[str, ...], state: str = ""
) -> Graph:
    entries = (StateEntry(value=state, target=state, kind="parameter"),) if state else ()
    last = nodes[-1].outputs[0]
    assert last is not None
    values = {name: TensorSpec.dense(shape, DType.F32) for name, shape in shapes.items()}
    return Graph(values=values, inputs=inputs, state=entries, nodes=nodes, outputs=(last,))


def node(name: str, *args: str | int | tuple[int, ...] | bool | None) -> Node:
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
