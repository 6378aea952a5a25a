"""Symbolic shapes of every value of a graph.

The graph holds numbers; a Program must bind to other shapes. Each operation has a rule that says where its result's
sizes come from; an operation without one takes sizes from the operand dimensions that agree. Invariant: whatever
a rule says, a size whose value is not the captured number is replaced by that number.
"""

from __future__ import annotations

from collections.abc import Callable

from memory.records import Graph, Node, references
from tools.recipes.arguments import Arguments, base_name, normal_dims
from tools.recipes.regrouping import Dims, regroup
from tools.recipes.sizes import ONE, Size, SizeTable, number


class Shapes:
    """Symbolic dimensions by value name, and the table their symbols live in."""

    def __init__(self, graph: Graph, twin: Graph | None = None) -> None:
        """`twin`: the same operations captured at smaller shapes. It settles what one capture leaves open."""
        self.graph = graph
        self.twin = twin if twin is not None and _same_operations(graph, twin) else None
        self._twin_nodes = {n.name: n for n in self.twin.nodes} if self.twin else {}
        given = (*graph.inputs, *(entry.value for entry in graph.state))
        taken = set(graph.values) | {node.name for node in graph.nodes}
        self.table = SizeTable(taken, {n: self.twin.values[n] for n in given} if self.twin else None)
        self.dims: dict[str, Dims] = {}
        for name in given:
            sizes = enumerate(graph.values[name].shape)
            self.dims[name] = tuple(self.table.shape(name, axis, size) for axis, size in sizes)
        for node in graph.nodes:
            self._infer(node)

    def of(self, name: str) -> Dims:
        """Dimensions of a value, canonical."""
        return tuple(self.table.canonical(size) for size in self.dims[name])

    def operands(self, node: Node) -> list[str]:
        """Tensor operands of a node in order."""
        return references((*node.args, *node.kwargs.values()))

    def twin_shape(self, name: str) -> tuple[int, ...] | None:
        """Shape of a value in the twin; None without one."""
        return self.twin.values[name].shape if self.twin else None

    def _infer(self, node: Node) -> None:
        rule = RULES.get(base_name(node.op))
        for position, output in enumerate(node.outputs):
            if output is None:
                continue
            shape = self.graph.values[output].shape
            guess = rule(self, node, shape, position) if rule else None
            if guess is None or len(guess) != len(shape):
                guess = match(self, node, shape, position)
            others = self.twin_shape(output) or shape
            self.dims[output] = tuple(
                self.settled(node, size, wanted, other)
                for size, wanted, other in zip(guess, shape, others, strict=True)
            )

    def settled(self, node: Node, guess: Size, wanted: int, other: int) -> Size:
        """`guess` where it gives `wanted` here and `other` in the twin, else a size that does, else the number."""
        if self.twin is None:
            return guess if guess.value == wanted else number(wanted)
        if (guess.value, guess.twin) == (wanted, other):
            return guess
        return number(wanted) if wanted == other else self._fitted(node, wanted, other) or number(wanted)

    def _fitted(self, node: Node, wanted: int, other: int) -> Size | None:
        """A multiple, a fraction or a shift of some operand's or input's size that is right for both captures; where
        none is, the straight line through both."""
        names = [*self.operands(node), *self.graph.inputs]
        sizes = list(dict.fromkeys(size for name in names for size in self.of(name) if size.atoms))
        for size in sizes:
            if (size.value, size.twin) == (wanted, other):
                return size
        for size in sizes:
            if min(size.value, size.twin, wanted, other) < 1 or wanted * size.twin != other * size.value:
                continue
            if wanted % size.value == 0:
                return size * number(wanted // size.value)
            if size.value % wanted == 0:
                return self.table.quotient(size, number(size.value // wanted))
        for size in sizes:
            shift = wanted - size.value
            if shift and shift == other - size.twin:
                text = f"{size.text}+{shift}" if shift > 0 else f"{size.text}-{-shift}"
                return self.table.derived(f"{node.name}_size", text, wanted)
        for size in sizes:
            run = size.value - size.twin
            if run:
                # What a rounded fraction (a chunk, a scaled size) does in between nobody asks.
                text = f"({size.text}-{size.twin})*{abs(wanted - other)}//{run}"
                text = f"{other}+{text}" if wanted > other else f"{other}-{text}"
                return self.table.derived(f"{node.name}_size", text, wanted)
        return None

    def argument(self, node: Node, name: str, default: int = 0) -> Size:
        """An integer argument, symbolic where the twin shows that it follows the shapes."""
        mine = Arguments(node).integer(name, default)
        return self.literal(node, mine, Arguments(self.twin_node(node)).integer(name, default))

    def twin_node(self, node: Node) -> Node:
        """The same node in the twin; itself without one."""
        return self._twin_nodes.get(node.name, node)

    def literal(self, node: Node, mine: int, other: int) -> Size:
        """An integer of `node` that is `other` in the twin."""
        return number(mine) if mine == other else self._fitted(node, mine, other) or number(mine)


def _same_operations(graph: Graph, twin: Graph) -> bool:
    """True where both captures have the same nodes under the same names."""
    mine = [(n.name, n.op, n.outputs, len(n.args)) for n in graph.nodes]
    return mine == [(n.name, n.op, n.outputs, len(n.args)) for n in twin.nodes] and set(graph.values) == set(
        twin.values
    )


Rule = Callable[[Shapes, Node, tuple[int, ...], int], "Dims | None"]


def match(shapes: Shapes, node: Node, shape: tuple[int, ...], _position: int) -> Dims:
    """Take each size from an operand's dimension that agrees: same place first, then any place, else the number."""
    operands = [shapes.of(name) for name in shapes.operands(node)]
    found: list[Size] = []
    for axis, wanted in enumerate(shape):
        same_place = [dims[axis] for dims in operands if axis < len(dims)]
        anywhere = [size for dims in operands for size in dims]
        hit = next((s for s in (*same_place, *anywhere) if s.value == wanted and wanted > 1), None)
        found.append(hit or (follows_input(shapes, wanted) if not operands else None) or number(wanted))
    return tuple(found)


def follows_input(shapes: Shapes, wanted: int) -> Size | None:
    """A constant's size that equals the first input's leading size is taken to follow it."""
    first = next((shapes.of(name) for name in shapes.graph.inputs if shapes.dims[name]), None)
    return first[0] if first and first[0].value == wanted and wanted > 1 else None


def broadcast(shapes: Shapes, node: Node, shape: tuple[int, ...], _position: int = 0) -> Dims:
    """Right-aligned broadcasting; sizes that must agree are recorded as equal."""
    found: list[Size] = []
    operands = [shapes.of(name) for name in shapes.operands(node)]
    for back in range(len(shape), 0, -1):
        here = [dims[-back] for dims in operands if len(dims) >= back]
        big = [size for size in here if size.value == shape[-back]]
        symbolic = [size for size in big if size.atoms] or big
        for other in symbolic[1:]:
            if shape[-back] > 1:
                shapes.table.equate(symbolic[0], other)
        found.append(symbolic[0] if symbolic else number(shape[-back]))
    return tuple(found)


def _reshape(shapes: Shapes, node: Node, shape: tuple[int, ...], _position: int) -> Dims:
    twin = shapes.twin_shape(node.outputs[0]) if node.outputs[0] else None
    return regroup(shapes.table, shapes.of(shapes.operands(node)[0]), shape, twin)


def permutation(node: Node, rank: int) -> tuple[int, ...]:
    """Order of the source's dimensions in the result of permute, transpose, t, movedim-like nodes."""
    arguments = Arguments(node)
    base = base_name(node.op)
    if base == "permute":
        return normal_dims(arguments.integers("dims"), rank)
    if base == "transpose":
        first, second = normal_dims((arguments.integer("dim0"), arguments.integer("dim1")), rank)
    else:
        first, second = (0, 1) if rank == 2 else (0, 0)
    order = list(range(rank))
    if rank:
        order[first], order[second] = order[second], order[first]
    return tuple(order)


def _permute(shapes: Shapes, node: Node, shape: tuple[int, ...], _position: int) -> Dims:
    source = shapes.of(shapes.operands(node)[0])
    return tuple(source[axis] for axis in permutation(node, len(shape)))


def _slice(shapes: Shapes, node: Node, shape: tuple[int, ...], _position: int) -> Dims:
    arguments = Arguments(node)
    source = list(shapes.of(shapes.operands(node)[0]))
    (axis,) = normal_dims((arguments.integer("dim"),), len(shape))
    size, step = source[axis], arguments.integer("step", 1)
    if shape[axis] == size.value:
        return tuple(source)
    start, end = shapes.argument(node, "start"), shapes.argument(node, "end", 2**62)
    begin = start.text if start.value >= 0 else f"({size.text}-{-start.value})"
    stop = (
        size.text
        if end.value >= size.value
        else end.text
        if end.value >= 0
        else f"({size.text}-{-end.value})"
    )
    if begin.isdigit() and stop.isdigit():
        source[axis] = number(shape[axis])
    elif begin == "0" and stop == end.text and step == 1:
        source[axis] = end
    else:
        expression = f"ceil_div({stop}-{begin}, {step})" if step != 1 else f"{stop}-{begin}"
        source[axis] = shapes.table.derived(f"{node.name}_{axis}", expression, shape[axis])
    return tuple(source)


def _part(shapes: Shapes, node: Node, shape: tuple[int, ...], _position: int) -> Dims:
    """Results of split and chunk: the source's sizes but for the divided dimension, which is a number."""
    source = shapes.of(shapes.operands(node)[0])
    (axis,) = normal_dims((Arguments(node).integer("dim"),), len(shape))
    whole = source[axis]
    part: Size = number(shape[axis])
    if "chunk" in base_name(node.op) and shape[axis] * Arguments(node).integer("chunks", 1) == whole.value:
        part = shapes.table.quotient(whole, number(Arguments(node).integer("chunks", 1)))
    return tuple(part if i == axis else size for i, size in enumerate(source))


def _reduce(shapes: Shapes, node: Node, shape: tuple[int, ...], _position: int) -> Dims | None:
    arguments = Arguments(node)
    source = shapes.of(shapes.operands(node)[0])
    dims = reduced_dims(arguments, len(source))
    kept = [ONE if axis in dims else size for axis, size in enumerate(source)]
    if len(shape) == len(source):
        return tuple(kept)
    return tuple(size for axis, size in enumerate(source) if axis not in dims)


def reduced_dims(arguments: Arguments, rank: int) -> tuple[int, ...]:
    """Dimensions a reduction runs over; all where none are named."""
    named = arguments.get("dim") if arguments.get("dim") is not None else arguments.get("dims")
    dims = (named,) if isinstance(named, int) else named if isinstance(named, tuple) else ()
    found = tuple(d for d in dims if isinstance(d, int))
    return tuple(sorted(normal_dims(found, rank))) if found else tuple(range(rank))


def _select(shapes: Shapes, node: Node, shape: tuple[int, ...], _position: int) -> Dims:
    source = shapes.of(shapes.operands(node)[0])
    (axis,) = normal_dims((Arguments(node).integer("dim"),), len(shape) + 1)
    return (*source[:axis], *source[axis + 1 :])


def _expand(shapes: Shapes, node: Node, shape: tuple[int, ...], position: int) -> Dims:
    source = shapes.of(shapes.operands(node)[0])
    padded = (ONE,) * (len(shape) - len(source)) + source
    everywhere = match(shapes, node, shape, position)
    return tuple(
        size if size.value == wanted else _input_size(shapes, axis, wanted) or everywhere[axis]
        for axis, (size, wanted) in enumerate(zip(padded, shape, strict=True))
    )


def _input_size(shapes: Shapes, axis: int, wanted: int) -> Size | None:
    for name in shapes.graph.inputs:
        dims = shapes.of(name)
        if axis < len(dims) and dims[axis].value == wanted and wanted > 1:
            return dims[axis]
    return None


RULES: dict[str, Rule] = {
    **dict.fromkeys(
        "view reshape _unsafe_view flatten unflatten squeeze unsqueeze view_copy".split(), _reshape
    ),
    **dict.fromkeys("permute transpose t".split(), _permute),
    **dict.fromkeys(
        "sum mean amax amin max min prod var std var_mean logsumexp linalg_vector_norm norm any all argmax argmin "
        "median mode".split(),
        _reduce,
    ),
    "slice": _slice,
    **dict.fromkeys("split split_with_sizes chunk unsafe_split unsafe_chunk".split(), _part),
    "select": _select,
    "expand": _expand,
}
"""Rules by operation; the rest of them, for library operations, is added by `tools.recipes.library_shapes`."""
