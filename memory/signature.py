"""A problem in words, for retrieval: what the archive files it under and what a search is likely to say.

Here: text made of a captured graph. Not here: embedding it. Invariant: pure functions of the problem; the name and
the path of the user's file play no part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from memory.records import Argument, Graph, Node, Problem, TensorSpec, references

SHOWN_OPERATIONS = 40
SHOWN_TENSORS = 12

NORMALISED = {"native_layer_norm": 1, "layer_norm": 1, "_fused_rms_norm": 1, "rms_norm": 1}
"""Operations that reduce over as many trailing dimensions as the list at this argument has entries."""

REDUCED = {
    "_softmax": 1,
    "softmax": 1,
    "_log_softmax": 1,
    "log_softmax": 1,
    "_safe_softmax": 1,
    "sum": 1,
    "mean": 1,
    "amax": 1,
    "amin": 1,
    "max": 1,
    "min": 1,
    "argmax": 1,
    "argmin": 1,
    "var": 1,
    "std": 1,
    "var_mean": 1,
    "prod": 1,
    "all": 1,
    "any": 1,
    "logsumexp": 1,
    "cumsum": 1,
    "cumprod": 1,
    "linalg_vector_norm": 2,
    "norm": 2,
    "sort": 1,
    "topk": 2,
    "cat": 1,
}
"""Operations that work along dimensions, and which argument names these."""

DEFAULT_DIMENSION = {"cat": 0, "sort": -1, "topk": -1}
"""Where leaving the dimension out does not mean all of them."""

FAMILIES = {
    "_softmax": "softmax",
    "_log_softmax": "log softmax",
    "_safe_softmax": "softmax",
    "native_layer_norm": "layer norm",
    "native_group_norm": "group norm",
    "_fused_rms_norm": "rms norm",
    "addmm": "linear matmul with bias",
    "mm": "matmul",
    "bmm": "batched matmul",
    "max_pool2d_with_indices": "max pool",
    "avg_pool2d": "average pool",
    "amax": "max reduction",
    "amin": "min reduction",
    "sum": "sum reduction",
    "mean": "mean reduction",
    "linalg_vector_norm": "vector norm",
}
"""What people call an operation."""


def operation_name(op: str) -> str:
    """The base name of a qualified overload: `addmm` for `aten.addmm.default`."""
    parts = op.split(".")
    return parts[1] if len(parts) > 1 else op


def problem_operations(problem: Problem) -> tuple[str, ...]:
    """Base names of the graph's operations, each once, in order of first use."""
    return tuple(dict.fromkeys(operation_name(node.op) for node in problem.graph.nodes))


def problem_signature(problem: Problem) -> str:
    """The problem in words: operations in order with counts, the dimensions they work along, shapes, dtypes."""
    graph = problem.graph
    counts = Counter(_described(graph, node) for node in graph.nodes)
    shown = [f"{text} x{count}" if count > 1 else text for text, count in counts.items()]
    raw = ", ".join(problem_operations(problem)[:SHOWN_OPERATIONS])
    parts = [
        f"{', '.join(_cut(shown, SHOWN_OPERATIONS))}",
        f"dtype {problem.dtype.value}",
        f"inputs {_tensors(graph, graph.inputs)}",
        f"outputs {_tensors(graph, graph.outputs)}",
    ]
    for kind in ("parameter", "buffer", "constant"):
        names = [entry.value for entry in graph.state if entry.kind == kind]
        if names:
            parts.append(f"{kind}s {_tensors(graph, names)}")
    parts.append("training mode" if problem.training else "inference mode")
    return "; ".join((*parts, f"aten operations {raw}"))


def _described(graph: Graph, node: Node) -> str:
    """One operation in words, such as `softmax over the last dimension`."""
    name = operation_name(node.op)
    family = FAMILIES.get(name, name.strip("_").replace("_", " "))
    rank = _rank(graph, node)
    if name in NORMALISED:
        lengths = _argument(node, NORMALISED[name], "normalized_shape")
        count = len(lengths) if isinstance(lengths, tuple) else 1
        return f"{family} over {_dimensions(tuple(range(-count, 0)), rank)}"
    if name in REDUCED and rank is not None:
        argument = _argument(node, REDUCED[name], "dim")
        if isinstance(argument, str):  # the overload that compares two tensors, such as aten.max.other
            return family
        dims = _whole_numbers(DEFAULT_DIMENSION.get(name) if argument is None else argument)
        return f"{family} {'along' if name == 'cat' else 'over'} {_dimensions(dims, rank)}"
    return family


def _dimensions(dims: tuple[int, ...], rank: int | None) -> str:
    """Dimensions in words; none named means all of them."""
    if rank is None:
        return "the last dimension" if len(dims) == 1 else f"the last {len(dims)} dimensions"
    found = sorted({dim % max(rank, 1) for dim in dims})
    if not found or len(found) == rank > 1:
        return "all dimensions"
    if found == list(range(rank - len(found), rank)):
        rows = ", row-wise" if rank > 1 else ""
        return f"the last dimension{rows}" if len(found) == 1 else f"the last {len(found)} dimensions"
    if found == [0]:
        return "the first dimension, column-wise" if rank == 2 else "the first dimension"
    return f"dimension{'s' if len(found) > 1 else ''} {' and '.join(map(str, found))} of {rank}"


def _rank(graph: Graph, node: Node) -> int | None:
    names = references((*node.args, *node.kwargs.values()))
    return len(graph.values[names[0]].shape) if names else None


def _argument(node: Node, position: int, name: str) -> Argument:
    if name in node.kwargs:
        return node.kwargs[name]
    return node.args[position] if position < len(node.args) else None


def _whole_numbers(argument: Argument) -> tuple[int, ...]:
    """The integers in an argument that is one or a list of them; empty for anything else."""
    items = argument if isinstance(argument, tuple) else (argument,)
    return tuple(item for item in items if isinstance(item, int) and not isinstance(item, bool))


def _tensors(graph: Graph, names: Sequence[str]) -> str:
    """Specs of tensors with counts, such as `f32[16,1024] x2`."""
    counts = Counter(_spec(graph.values[name]) for name in names)
    shown = [f"{text} x{count}" if count > 1 else text for text, count in counts.items()]
    return " ".join(_cut(shown, SHOWN_TENSORS)) or "none"


def _spec(spec: TensorSpec) -> str:
    sizes = ",".join(map(str, spec.shape))
    return f"{spec.dtype.value}[{sizes}]" + ("" if spec.is_contiguous else " strided")


def _cut(texts: list[str], most: int) -> list[str]:
    left = len(texts) - most
    return [*texts[:most], f"and {left} more"] if left > 0 else texts
