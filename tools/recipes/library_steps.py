"""Library steps: a graph node as a call whose sizes are expressions, so that it binds to other shapes too."""

from __future__ import annotations

from memory.records import Argument, LibraryStep, Node, SpecialArgument
from tools.recipes.arguments import Arguments, base_name, parameter_names
from tools.recipes.regrouping import Dims
from tools.recipes.shapes import Shapes
from tools.recipes.sizes import ONE, Size, product

_SIZED_BY_OUTPUT = frozenset(
    "view reshape _unsafe_view expand full zeros ones new_zeros new_ones new_full view_copy expand_copy "
    "_reshape_alias_copy".split()
)
_END = 2**63 - 1


def size_argument(size: Size) -> Argument:
    """A size as an argument: a plain number where it is one."""
    return SpecialArgument(expression=size.text) if size.atoms else size.factor


def library_step(
    shapes: Shapes, node: Node, rename: dict[str, str], outputs: tuple[str | None, ...]
) -> LibraryStep:
    """The node's own operation, its operands renamed as `rename` says."""
    names = parameter_names(node.op)
    sizes = _sizes(shapes, node)
    twin = shapes.twin_node(node)
    args = tuple(
        sizes.get(names[i] if i < len(names) else "", _bound(shapes, node, _renamed(mine, rename), other))
        for i, (mine, other) in enumerate(zip(node.args, twin.args, strict=True))
    )
    kwargs = {
        name: sizes.get(name, _bound(shapes, node, _renamed(value, rename), twin.kwargs.get(name, value)))
        for name, value in node.kwargs.items()
    }
    return LibraryStep(op=node.op, args=args, kwargs=kwargs, outputs=outputs)


def _bound(shapes: Shapes, node: Node, mine: Argument, other: Argument) -> Argument:
    """An argument as it is, but for integers that differ in the twin, which become expressions."""
    if isinstance(mine, tuple) and isinstance(other, tuple) and len(mine) == len(other):
        return tuple(_bound(shapes, node, m, o) for m, o in zip(mine, other, strict=True))
    plain = isinstance(mine, int) and isinstance(other, int) and not isinstance(mine, bool)
    if plain and mine != other and isinstance(mine, int) and isinstance(other, int):
        return size_argument(shapes.literal(node, mine, other))
    return mine


def _renamed(argument: Argument, rename: dict[str, str]) -> Argument:
    if isinstance(argument, str):
        return rename.get(argument, argument)
    if isinstance(argument, tuple):
        return tuple(_renamed(item, rename) for item in argument)
    return argument


def _sizes(shapes: Shapes, node: Node) -> dict[str, Argument]:
    """Arguments that repeat sizes of the problem, as expressions."""
    base = base_name(node.op)
    operands = shapes.operands(node)
    source: Dims = shapes.of(operands[0]) if operands else ()
    output = next((name for name in node.outputs if name is not None), None)
    result: Dims = shapes.of(output) if output else ()
    if base in _SIZED_BY_OUTPUT:
        listed = tuple(size_argument(size) for size in result)
        return {"size": listed, "shape": listed}
    if base == "repeat":
        padded = (ONE,) * (len(result) - len(source)) + source
        times = [shapes.table.quotient(whole, part) for whole, part in zip(result, padded, strict=True)]
        return {"repeats": tuple(size_argument(size) for size in times)}
    if base == "native_group_norm":
        spatial = shapes.table.canonical(product(source[2:]))
        return {"N": size_argument(source[0]), "C": size_argument(source[1]), "HxW": size_argument(spatial)}
    if base in ("native_layer_norm", "layer_norm", "rms_norm", "_fused_rms_norm"):
        inner = len(Arguments(node).integers("normalized_shape"))
        return {"normalized_shape": tuple(size_argument(s) for s in source[len(source) - inner :])}
    if base == "slice":
        arguments = Arguments(node)
        axis = arguments.integer("dim")
        if arguments.integer("end", _END) >= source[axis].value:
            return {"end": _END}
    if base == "arange" and len(result) == 1 and not Arguments(node).get("start"):
        step = Arguments(node).get("step")
        if step is None or (isinstance(step, int) and step > 0):
            return {"end": size_argument(result[0] * shapes.argument(node, "step", 1))}
    if base.startswith("upsample") and Arguments(node).integers("output_size"):
        spatial_rank = len(Arguments(node).integers("output_size"))
        return {"output_size": tuple(size_argument(s) for s in result[-spatial_rank:])}
    return {}
