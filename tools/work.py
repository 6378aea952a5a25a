"""What one forward must do: floating-point operations and bytes, counted over a Graph. Pure.

Invariant: `min_bytes` is a lower bound of the traffic: a tensor that is only sliced or gathered from counts for
what is taken, and one that is never read counts for nothing. FLOPs are those of eager's own operations.
"""

from __future__ import annotations

import math

from memory.records import Graph, Node, TensorSpec, Work, references
from tools.roofline import VIEW_OPERATIONS, short_name

_MATMULS = {
    "mm": 0,
    "bmm": 0,
    "mv": 0,
    "dot": 0,
    "vdot": 0,
    "linear": 0,
    "addmm": 1,
    "addmv": 1,
    "baddbmm": 1,
}
"""Matrix products and the position of their left operand."""
_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
_TAKES_PART = frozenset(("slice", "select", "narrow", "embedding", "index_select", "gather", "index"))
"""Operations that read no more of their first tensor than they write."""
_FREE = VIEW_OPERATIONS | {
    *(
        "empty",
        "zeros",
        "ones",
        "full",
        "arange",
        "scalar_tensor",
        "eye",
        "constant_pad_nd",
        "repeat",
        "roll",
        "flip",
    ),
    *("empty_like", "zeros_like", "ones_like", "full_like", "new_empty", "new_zeros", "new_ones", "new_full"),
    *("clone", "copy", "_to_copy", "cat", "stack", "embedding", "index_select", "gather", "index"),
    *("slice_scatter", "select_scatter"),
}
"""Operations that only move or make values."""


def count_work(graph: Graph) -> Work:
    """FLOPs (a multiply-add counts 2, any other element of a pointwise operation or reduction 1) and bytes."""
    return Work(flops=sum(node_flops(node, graph) for node in graph.nodes), min_bytes=_min_bytes(graph))


def node_flops(node: Node, graph: Graph) -> int:
    """Floating-point operations of one node."""
    short = short_name(node.op)
    reads = [graph.values[name] for name in references((*node.args, *node.kwargs.values()))]
    writes = [graph.values[name] for name in node.outputs if name is not None]
    if short in _FREE or not reads or not writes:
        return 0
    if short in _MATMULS:
        left = reads[_MATMULS[short]]
        return 2 * writes[0].elements * (left.shape[-1] if left.shape else 1)
    if short == "convolution":
        transposed = bool(node.args[6]) if len(node.args) > 6 else False
        return _convolution(reads[0], reads[1], writes[0], transposed)
    if "scaled_dot_product" in short:
        query, key, value = reads[:3]
        return 2 * math.prod(query.shape[:-1]) * key.shape[-2] * (query.shape[-1] + value.shape[-1])
    if short in _GATES:
        return _recurrent(node, graph, reads[0])
    return max(spec.elements for spec in (*reads, *writes))


def _convolution(source: TensorSpec, weight: TensorSpec, result: TensorSpec, transposed: bool) -> int:
    # weight is (out, in / groups, *kernel), or (in, out / groups, *kernel) where transposed.
    each = math.prod(weight.shape[1:])
    return 2 * each * (source.elements if transposed else result.elements)


def _recurrent(node: Node, graph: Graph, source: TensorSpec) -> int:
    """Matrix products of every step, layer and direction: two MACs' worth for each weight and step."""
    groups = [references(argument) for argument in node.args if isinstance(argument, tuple)]
    weights = [graph.values[n] for n in groups[-1] if len(graph.values[n].shape) == 2] if groups else []
    steps = math.prod(source.shape[:-1])
    return 2 * steps * sum(weight.elements for weight in weights)


def _min_bytes(graph: Graph) -> int:
    readers: dict[str, list[Node]] = {}
    makers: dict[str, Node] = {}
    for node in graph.nodes:
        for name in references((*node.args, *node.kwargs.values())):
            readers.setdefault(name, []).append(node)
        makers |= {name: node for name in node.outputs if name is not None}
    given = (*graph.inputs, *(entry.value for entry in graph.state))
    read = sum(_bytes_read(name, graph, readers) for name in given)
    results = {*graph.outputs, *graph.updates.values()}
    return read + sum(graph.values[name].bytes for name in results if _is_written(name, makers))


def _bytes_read(name: str, graph: Graph, readers: dict[str, list[Node]]) -> int:
    """Bytes of a tensor that the graph needs, followed through views."""
    whole = graph.values[name].bytes
    total = 0
    for node in readers.get(name, ()):
        short = short_name(node.op)
        made = [output for output in node.outputs if output is not None]
        first = bool(node.args) and node.args[0] == name
        if first and short in _TAKES_PART and short not in VIEW_OPERATIONS:
            total += sum(graph.values[output].bytes for output in made)
        elif first and short in VIEW_OPERATIONS:
            total += sum(_bytes_read(output, graph, readers) for output in made)
        else:
            return whole
        if total >= whole:
            return whole
    return total


def _is_written(name: str, makers: dict[str, Node]) -> bool:
    """False where a result is an input, or only a view of one."""
    while name in makers:
        node = makers[name]
        if short_name(node.op) not in VIEW_OPERATIONS or not isinstance(node.args[0], str):
            return True
        name = node.args[0]
    return False
