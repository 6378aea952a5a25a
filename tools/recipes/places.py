"""Where the elements of a value are in memory: a tensor, strides and an offset, all symbolic.

Views of a tensor (transposes, slices, expansions, compatible reshapes) only change strides, so a kernel reads through
them without a copy. A reshape that no strides can express has no place of its own and must be copied first.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from memory.records import Graph, Node, TensorSpec
from tools.recipes.arguments import Arguments, base_name, normal_dims
from tools.recipes.regrouping import Dims, pair_groups
from tools.recipes.shapes import Shapes, permutation
from tools.recipes.sizes import ONE, Size, SizeTable, number, product


@dataclass(frozen=True)
class Place:
    """Element (i, j, ...) of a value lies at `offset + i*strides[0] + j*strides[1] + ...` of `tensor`."""

    tensor: str
    dims: Dims
    strides: tuple[Size, ...]
    offset: tuple[Size, ...] = ()
    """Summands, in elements."""


def dense_strides(dims: Dims) -> tuple[Size, ...]:
    """Row-major strides."""
    return tuple(product(dims[axis + 1 :]) for axis in range(len(dims)))


def dense(tensor: str, dims: Dims) -> Place:
    """A contiguous tensor."""
    return Place(tensor, dims, dense_strides(dims))


def stride_order(spec: TensorSpec) -> tuple[int, ...]:
    """Dimensions by falling stride; the identity for a contiguous tensor."""
    rank = len(spec.shape)
    if spec.is_contiguous:
        return tuple(range(rank))
    return tuple(sorted(range(rank), key=lambda axis: (-spec.strides[axis], axis)))


def is_dense_permuted(spec: TensorSpec) -> bool:
    """True where the tensor is some permutation of a contiguous one."""
    order = stride_order(spec)
    strides = tuple(spec.strides[axis] for axis in order)
    return TensorSpec(
        shape=tuple(spec.shape[axis] for axis in order), dtype=spec.dtype, strides=strides
    ).is_contiguous


def given_place(graph: Graph, shapes: Shapes, name: str) -> Place:
    """Place of an input or a state tensor, with the strides it was captured with."""
    spec, dims = graph.values[name], shapes.of(name)
    if spec.is_contiguous:
        return dense(name, dims)
    strides = tuple(
        number(0) if stride == 0 else shapes.table.stride(name, axis, stride)
        for axis, stride in enumerate(spec.strides)
    )
    return Place(name, dims, strides)


def view_place(shapes: Shapes, node: Node, position: int, source: Place) -> Place | None:
    """Place of result `position` of a view node; None for a reshape that needs a copy, or no view at all."""
    base = base_name(node.op)
    output = node.outputs[position]
    if output is None:
        return None
    dims = shapes.of(output)
    if base in ("permute", "transpose", "t"):
        order = permutation(node, len(dims))
        return Place(source.tensor, dims, tuple(source.strides[axis] for axis in order), source.offset)
    if base == "expand":
        lead = len(dims) - len(source.dims)
        strides = tuple(
            number(0)
            if axis < lead or source.dims[axis - lead].value != size.value
            else source.strides[axis - lead]
            for axis, size in enumerate(dims)
        )
        return Place(source.tensor, dims, strides, source.offset)
    if base in WINDOWS:
        return _window(shapes, node, position, source)
    strides_or_none = _reshape(shapes.table, source, dims)
    return None if strides_or_none is None else Place(source.tensor, dims, strides_or_none, source.offset)


WINDOWS = frozenset(
    "slice select split split_with_sizes chunk unbind narrow unsafe_split unsafe_chunk".split()
)
"""Views of a part: they can be read through, but never lie inside a region."""


def _window(shapes: Shapes, node: Node, position: int, source: Place) -> Place | None:
    arguments = Arguments(node)
    base, dims = base_name(node.op), shapes.of(node.outputs[position] or "")
    (axis,) = normal_dims((arguments.integer("dim"),), len(source.dims))
    stride, size = source.strides[axis], source.dims[axis]
    strides = list(source.strides)
    if base in ("select", "unbind"):
        del strides[axis]
        start = _from_end(shapes.argument(node, "index") if base == "select" else number(position), size)
    elif base == "slice":
        start = _from_end(shapes.argument(node, "start"), size)
        strides[axis] = stride * number(arguments.integer("step", 1))
    elif base == "narrow":
        start = _from_end(shapes.argument(node, "start"), size)
    elif base == "split_with_sizes":
        start = number(sum(arguments.integers("split_sizes")[:position]))
    elif base in ("split", "unsafe_split"):
        start = number(position) * shapes.argument(node, "split_size", 1)
    else:
        start = number(position) * dims[axis]
    if start is None:
        return None
    offset = source.offset if start.value == 0 else (*source.offset, start * stride)
    return Place(source.tensor, dims, tuple(strides), offset)


def _from_end(index: Size, size: Size) -> Size | None:
    """A start index; one counted from the end is known only for a constant size."""
    if index.value >= 0:
        return index
    if index.value == -size.value or size.atoms:
        return None
    return number(size.value + index.value)


def _reshape(table: SizeTable, source: Place, dims: Dims) -> tuple[Size, ...] | None:
    """Strides of a reshape: each group of source dimensions must be one run of equally spaced elements."""
    values, wanted = tuple(s.value for s in source.dims), tuple(s.value for s in dims)
    result = [ONE] * len(dims)
    for taken, given in pair_groups(values, wanted):
        for outer, inner in pairwise(taken):
            if not table.same(source.strides[outer], source.strides[inner] * source.dims[inner]):
                return None
        step = source.strides[taken[-1]]
        for index in reversed(given):
            result[index] = step
            step = step * dims[index]
    return tuple(result)
