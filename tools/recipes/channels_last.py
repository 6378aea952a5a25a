"""Channels-last plans: convolutions read and write each pixel's channels side by side, as tensor cores take them.

cuDNN's fast convolutions work on that layout; given channels-first tensors, it converts what goes in and what comes out
in passes of its own. Here the kernels around a convolution read and write its layout, and where none is around (the
graph's own inputs and results), a copy is put into the graph, which becomes part of a kernel or one by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memory.records import Graph, Node, TensorSpec
from tools.recipes.arguments import base_name
from tools.recipes.fusion import Fusion, is_view

FORMATS = {4: "channels_last", 5: "channels_last_3d"}
"""PyTorch's names, by rank."""


def last_order(rank: int) -> tuple[int, ...]:
    """Dimensions as they lie in memory: batch, space, channels."""
    return (0, *range(2, rank), 1)


@dataclass(frozen=True)
class ChannelsLast:
    """Which values of a graph lie channels-last."""

    fed: frozenset[str]
    """Values that a convolution reads."""
    made: frozenset[str]
    """Values that a convolution makes."""
    weights: Mapping[str, str]
    """Weight of the convolution that makes a value."""


NOWHERE = ChannelsLast(frozenset(), frozenset(), {})


def find(fusion: Fusion) -> ChannelsLast:
    """The convolutions of a cut graph that stay library calls; nothing where there are none."""
    graph = fusion.graph
    results, sources, weights = [], [], {}
    for index, node in enumerate(graph.nodes):
        if fusion.lowered[index] is not None or not _is_convolution(graph, node):
            continue
        source, weight = fusion.shapes.operands(node)[:2]
        (result,) = (name for name in node.outputs if name is not None)
        results.append(result)
        sources.append(source)
        weights[result] = weight
    kept = {*graph.outputs, *graph.updates.values(), *graph.inputs}
    return ChannelsLast(frozenset(sources) - kept, frozenset(results), weights)


def _is_convolution(graph: Graph, node: Node) -> bool:
    result = node.outputs[0] if node.outputs else None
    if base_name(node.op) != "convolution" or result is None:
        return False
    spec = graph.values[result]
    return len(spec.shape) in FORMATS and spec.dtype.is_floating


def with_copies(fusion: Fusion) -> Graph:
    """The graph with a copy before each convolution that no kernel feeds, and after each that makes a result of it."""
    graph, last = fusion.graph, find(fusion)
    values: dict[str, TensorSpec] = dict(graph.values)
    nodes: list[Node] = []
    copies: dict[str, str] = {}
    for node in graph.nodes:
        if last.made.isdisjoint(o for o in node.outputs if o is not None):
            nodes.append(node)
            continue
        source = fusion.shapes.operands(node)[0]
        if not _fed_by_a_kernel(fusion, last, source):
            if source not in copies:
                copies[source] = _copy(values, nodes, source)
            node = node.model_copy(update={"args": (copies[source], *node.args[1:])})
        nodes.append(node)
    results: dict[str, str] = {}
    for name in (*graph.outputs, *graph.updates.values()):
        if name in last.made and name not in results:
            results[name] = _copy(values, nodes, name)
    return Graph(
        values=values,
        inputs=graph.inputs,
        state=graph.state,
        nodes=tuple(nodes),
        outputs=tuple(results.get(name, name) for name in graph.outputs),
        updates={state: results.get(name, name) for state, name in graph.updates.items()},
    )


def _fed_by_a_kernel(fusion: Fusion, last: ChannelsLast, source: str) -> bool:
    """True where the value comes out of a kernel of ours, or of a convolution, in whatever layout it is to have."""
    graph = fusion.graph
    if source in last.made:
        return True
    maker = fusion.maker.get(source)
    kept = source in graph.outputs or source in graph.updates.values()
    return (
        maker is not None
        and not kept
        and not is_view(graph.nodes[maker])
        and fusion.lowered[maker] is not None
    )


def _copy(values: dict[str, TensorSpec], nodes: list[Node], source: str) -> str:
    """Append a copy of a value; returns its name."""
    name = f"{source}_copied"
    while name in values:
        name += "_"
    values[name] = values[source]
    nodes.append(Node(name=name, op="aten.clone.default", args=(source,), outputs=(name,)))
    return name
