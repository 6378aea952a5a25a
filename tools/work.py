"""What one forward must do: floating-point operations and bytes, counted over a Graph or one call. Pure.

The one place that counts FLOPs and bytes by operation: floors, modelled times and profiles all come from here.
Invariant: `min_bytes` is a lower bound of the traffic: a tensor that is only sliced or gathered from counts for
what is taken, and one that is never read counts for nothing. FLOPs are those of eager's own operations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from memory.records import Argument, Graph, Node, TensorSpec, Work, references

VIEW_OPERATIONS = frozenset(
    "view reshape _unsafe_view _reshape_alias permute transpose t expand squeeze unsqueeze slice select split "
    "split_with_sizes unsafe_split unsafe_split_with_sizes unbind chunk alias detach as_strided diagonal unfold "
    "narrow movedim swapaxes".split()
)
"""Operations that only make a new view: no kernel runs."""
MATMULS = {
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
RECURRENT = frozenset(("lstm", "gru", "rnn_tanh", "rnn_relu"))
"""Whole recurrent layers. Their tensors: input, states, then the weights and biases of each layer and direction."""
_TAKES_PART = frozenset(
    "slice select narrow embedding index_select gather index _unsafe_index take grid_sampler_2d grid_sampler_3d "
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d "
    "upsample_trilinear3d _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d".split()
)
"""Operations that read no more of their first tensor than they write."""
_SHAPE_ALONE = frozenset(
    "copy fill zero zeros_like ones_like full_like empty_like new_zeros new_ones new_full new_empty".split()
)
"""Operations that read of their first tensor its shape alone."""
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
    *("slice_scatter", "select_scatter", "fill", "zero", "take", "_unsafe_index"),
}
"""Operations that only move or make values."""


@dataclass(frozen=True)
class Call:
    """One ATen operation with its tensors, from a captured graph or from a plan."""

    op: str
    args: tuple[Argument, ...]
    """Positional ones; a string names a tensor."""
    kwargs: Mapping[str, Argument]
    names: tuple[str, ...]
    """Tensors it reads, in order; the same one may come twice."""
    reads: tuple[TensorSpec, ...]
    """Of `names`."""
    writes: tuple[TensorSpec, ...]

    @property
    def short(self) -> str:
        """`mm` of `aten.mm.default`."""
        return short_name(self.op)

    @property
    def is_view(self) -> bool:
        """True where no kernel runs."""
        return self.short in VIEW_OPERATIONS

    def flag(self, name: str, position: int) -> bool:
        """A boolean argument, given by name or at its position in the schema; False where it is absent."""
        given = self.args[position] if len(self.args) > position else self.kwargs.get(name)
        return given is True


def short_name(op: str) -> str:
    """`mm` of `aten.mm.default`."""
    parts = op.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def node_call(node: Node, values: Mapping[str, TensorSpec]) -> Call:
    """A node of a graph as a call; `values` has the specs by name."""
    names = references((*node.args, *node.kwargs.values()))
    writes = tuple(values[name] for name in node.outputs if name is not None)
    return Call(node.op, node.args, node.kwargs, tuple(names), tuple(values[name] for name in names), writes)


def count_work(graph: Graph) -> Work:
    """FLOPs (a multiply-add counts 2, any other element of a pointwise operation or reduction 1) and bytes."""
    calls = [node_call(node, graph.values) for node in graph.nodes]
    return Work(flops=sum(call_flops(call) for call in calls), min_bytes=_min_bytes(graph))


# --- floating-point operations --------------------------------------------------------------------------------


def call_flops(call: Call) -> int:
    """Floating-point operations of one call, from shapes alone."""
    short, reads, writes = call.short, call.reads, call.writes
    if short in _FREE or not reads or not writes:
        return 0
    if short in MATMULS and len(reads) > MATMULS[short]:
        left = reads[MATMULS[short]]
        return 2 * writes[0].elements * (left.shape[-1] if left.shape else 1)
    if short == "convolution" and len(reads) > 1:
        # weight is (out, in / groups, *kernel), or (in, out / groups, *kernel) where transposed.
        each = math.prod(reads[1].shape[1:])
        return 2 * each * (reads[0] if _transposed(call) else writes[0]).elements
    if "scaled_dot_product" in short and len(reads) > 2:
        query, key, value = reads[:3]
        pairs = _attended(query.shape[-2], key.shape[-2], causal=call.flag("is_causal", 5))
        return 2 * math.prod(query.shape[:-2]) * pairs * (query.shape[-1] + value.shape[-1])
    if short in RECURRENT:
        # Matrix products of every step, layer and direction: each weight once a step.
        weights = sum(spec.elements for spec in reads[1:] if len(spec.shape) == 2)
        return 2 * math.prod(reads[0].shape[:-1]) * weights
    return max(spec.elements for spec in (*reads, *writes))


def _transposed(call: Call) -> bool:
    if call.args:
        return call.flag("transposed", 6)
    return call.reads[1].shape[0] != call.writes[0].shape[1]


def _attended(queries: int, keys: int, *, causal: bool) -> int:
    """Pairs of a query and a key that it sees; a causal query sees the keys up to its own place."""
    if not causal:
        return queries * keys
    square = min(queries, keys)
    return square * (square + 1) // 2 + (queries - square) * keys


def sequential_steps(call: Call) -> int:
    """Cells that a recurrent layer evaluates one after the other: time steps, layers and directions."""
    source, state = call.reads[:2]
    batch = max(state.shape[-2], 1)
    return math.prod(source.shape[:-1]) // batch * state.shape[0]


# --- bytes ----------------------------------------------------------------------------------------------------


def call_bytes(call: Call) -> int:
    """Bytes that one call moves at least: each tensor it reads once, as far as it reads it, and what it writes."""
    if call.is_view:
        return 0
    first = call.names[0] if call.names else ""
    distinct = dict(zip(call.names, call.reads, strict=True))
    read = sum(
        _taken(call) if name == first and call.names.count(first) == 1 else spec.bytes
        for name, spec in distinct.items()
    )
    return read + sum(spec.bytes for spec in call.writes)


def _taken(call: Call) -> int:
    """Bytes of its first tensor that a call reads."""
    short, first = call.short, call.reads[0]
    if short in _SHAPE_ALONE:
        return 0
    if short in _TAKES_PART:
        return min(first.bytes, sum(spec.bytes for spec in call.writes))
    if short == "_embedding_bag":
        return min(first.bytes, call.reads[1].elements * first.shape[-1] * first.dtype.bytes)
    return math.ceil(first.bytes * _window_share(call))


def _window_share(call: Call) -> float:
    """Share of its input that a strided window sees: a 1x1 kernel with stride 2 skips three elements of four."""
    if call.short == "convolution" and len(call.args) > 3 and not _transposed(call):
        kernel, stride = call.reads[1].shape[2:], _integers(call.args[3])
    elif call.short.startswith(("max_pool", "avg_pool")) and len(call.args) > 2:
        kernel, stride = _integers(call.args[1]), _integers(call.args[2])
    else:
        return 1.0
    if not kernel or len(kernel) != len(stride):
        return 1.0
    share = 1.0
    spatial = zip(call.reads[0].shape[-len(kernel) :], call.writes[0].shape[-len(kernel) :], strict=True)
    for size, step, (wide, windows) in zip(kernel, stride, spatial, strict=True):
        share *= min(1.0, size / max(step, 1), size * windows / max(wide, 1))
    return share


def _integers(argument: Argument) -> tuple[int, ...]:
    """A list of integers; () for anything else."""
    items = argument if isinstance(argument, tuple) else ()
    return tuple(item for item in items if isinstance(item, int))


def _min_bytes(graph: Graph) -> int:
    readers: dict[str, list[Node]] = {}
    makers: dict[str, Node] = {}
    for node in graph.nodes:
        for name in dict.fromkeys(references((*node.args, *node.kwargs.values()))):
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
        call = node_call(node, graph.values)
        if call.names[0] != name or call.names.count(name) > 1:
            return whole
        if call.is_view:
            total += sum(_bytes_read(output, graph, readers) for output in node.outputs if output is not None)
        else:
            total += _taken(call)
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
