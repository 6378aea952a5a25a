"""From a node of the graph to micro-operations; None for an operation that stays a library call.

Here: the registry and elementwise operations without parameters. The other `*_lowering` modules and `activations`
enter theirs. Invariant: the last names assigned are the node's own outputs.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from memory.records import DType, Graph, Node, SpecialArgument
from tools.arrays import dtype_of, torch_dtype
from tools.library_ops import why_not_called
from tools.recipes import elementwise
from tools.recipes.arguments import Arguments, base_name, parameter_names
from tools.recipes.micro import C_TYPES, Draft, Fill, Micro, fit, literal
from tools.recipes.regrouping import Dims
from tools.recipes.shapes import Shapes
from tools.recipes.sizes import Size


class Context:
    """One node being lowered: its arguments, its operands' dimensions, and the draft that grows."""

    def __init__(self, graph: Graph, shapes: Shapes, node: Node) -> None:
        self.graph = graph
        self.shapes = shapes
        self.node = node
        self.base = base_name(node.op)
        self.arguments = Arguments(node)
        dtypes = {name: graph.values[name].dtype for name in shapes.operands(node)}
        self.draft = Draft(node.name, dtypes)
        self.parameters = parameter_names(node.op)

    @property
    def output(self) -> str:
        """Name of the first result; a temporary where it is unused."""
        return self.node.outputs[0] or self.draft.fresh("unused")

    @property
    def dtype(self) -> DType:
        """Dtype of the first result that is used."""
        first = next(name for name in self.node.outputs if name is not None)
        return self.graph.values[first].dtype

    def dims(self, name: str) -> Dims:
        """Symbolic dimensions of an operand or a result of the node."""
        return self.shapes.of(name)

    def operand(self, parameter: str, dtype: DType) -> str | None:
        """An argument as a value: the tensor's name, or a constant of `dtype`; None where absent."""
        value = self.arguments.get(parameter)
        if isinstance(value, str):
            return value
        if isinstance(value, SpecialArgument) and value.float is not None:
            return self.constant(float(value.float), dtype)
        other = Arguments(self.shapes.twin_node(self.node)).get(parameter)
        if isinstance(value, int) and isinstance(other, int) and value != other:
            return self._size_constant(self.shapes.literal(self.node, value, other), dtype)
        return self.constant(value, dtype) if isinstance(value, int | float) else None

    def _size_constant(self, size: Size, dtype: DType) -> str:
        """A number that follows the shapes, such as the length a sum is divided by: a macro in the source."""
        named = self.shapes.table.derived(f"{self.node.name}_number", size.text, size.value)
        name = self.draft.fresh("k")
        self.draft.ops.append(Fill(name, dtype, f"({C_TYPES[dtype]}){named.text}", ()))
        self.draft.dtypes[name] = dtype
        return name

    def constant(self, value: float | int | bool, dtype: DType) -> str:
        """A scalar that broadcasts against anything."""
        name = self.draft.fresh("k")
        self.draft.ops.append(Fill(name, dtype, literal(value, dtype), ()))
        self.draft.dtypes[name] = dtype
        return name

    def emit(self, text: str, *operands: str) -> None:
        """The node's first result as one expression in the result's type."""
        self.draft.map(self.output, self.dtype, text, *operands, cheap=elementwise.is_cheap(text))


Lowering = Callable[[Context], bool]
"""Writes the draft; False where this form of the operation is not covered."""
LOWERINGS: dict[str, Lowering] = {}


def lower(graph: Graph, shapes: Shapes, node: Node) -> tuple[Micro, ...] | None:
    """Micro-operations of a node; None where only a library call will do."""
    lowering = LOWERINGS.get(base_name(node.op))
    if lowering is None or not node.op.startswith("aten.") or all(o is None for o in node.outputs):
        return None
    context = Context(graph, shapes, node)
    if not lowering(context):
        return None
    made = {op.name for op in context.draft.ops}
    return tuple(context.draft.ops) if all(o is None or o in made for o in node.outputs) else None


def common_dtype(context: Context, first: str, second: str) -> DType | None:
    """The type PyTorch compares two arguments in (0-dim tensors and numbers give way to tensors)."""
    left, right = _sample(context, first), _sample(context, second)
    if not isinstance(left, torch.Tensor):
        left, right = right, left
    return dtype_of(torch.result_type(left, right)) if isinstance(left, torch.Tensor) else None


def _sample(context: Context, parameter: str) -> torch.Tensor | float | int | bool:
    value = context.arguments.get(parameter)
    if isinstance(value, str):
        spec = context.graph.values[value]
        return torch.empty((1,) if spec.shape else (), dtype=torch_dtype(spec.dtype), device="meta")
    return value if isinstance(value, int | float) else 0.0


# --- elementwise ----------------------------------------------------------------------------------------------


def _unary(context: Context) -> bool:
    x = context.operand(context.parameters[0], context.dtype)
    if x is None:
        return False
    base, dtype = context.base, context.dtype
    if base in elementwise.ROUNDING and not dtype.is_floating:
        context.emit("{0}", x)
    elif base in elementwise.ANY_UNARY:
        text = elementwise.ANY_UNARY[base]
        context.emit("!{0}" if base == "bitwise_not" and dtype is DType.BOOL else text, x)
    else:
        context.emit((elementwise.FLOAT_UNARY | elementwise.ROUNDING)[base], x)
    return True


def _identity(context: Context) -> bool:
    if len([o for o in context.node.outputs if o]) > 1 or why_not_called(
        context.node.op, context.node.args, context.node.kwargs
    ):
        return False
    x = context.arguments.tensor(context.parameters[0])
    if x is None or context.draft.dtypes[x] != context.dtype:
        return False
    context.emit("{0}", x)
    return True


def _predicate(context: Context) -> bool:
    x = context.arguments.tensor(context.parameters[0])
    if x is None:
        return False
    kind = context.draft.dtypes[x]
    text = elementwise.PREDICATES[context.base]
    if "INF" in text and not kind.is_floating:
        return False
    text = fit(text.replace("INF", literal(float("inf"), kind)), kind)
    context.draft.raw(context.output, DType.BOOL, text, x)
    return True


def _comparison(context: Context) -> bool:
    first, second = context.parameters[:2]
    kind = common_dtype(context, first, second)
    if kind is None:
        return False
    left, right = context.operand(first, kind), context.operand(second, kind)
    if left is None or right is None:
        return False
    text = elementwise.COMPARISONS[context.base]
    for index, name in enumerate((left, right)):
        if C_TYPES[context.draft.dtypes[name]] != C_TYPES[kind]:
            text = text.replace(f"{{{index}}}", f"({C_TYPES[kind]}){{{index}}}")
    context.draft.raw(context.output, DType.BOOL, text, left, right)
    return True


def _binary(context: Context) -> bool:
    dtype = context.dtype
    if len(context.parameters) < 2 or (context.base in ("max", "min") and "dim" in context.parameters):
        return False
    if context.base in elementwise.FLOAT_BINARY and not dtype.is_floating:
        return False
    left, right = (context.operand(p, dtype) for p in context.parameters[:2])
    if left is None or right is None:
        return False
    table = elementwise.BINARY | elementwise.FLOAT_BINARY
    text = table[context.base]
    context.emit("{0} && {1}" if dtype is DType.BOOL and context.base == "mul" else text, left, right)
    return True


def _add(context: Context) -> bool:
    dtype = context.dtype
    left, right = (context.operand(p, dtype) for p in context.parameters[:2])
    if left is None or right is None or dtype is DType.BOOL:
        return False
    sign = "+" if context.base == "add" else "-"
    if context.base == "rsub":
        left, right = right, left
    alpha = context.arguments.get("alpha")
    scale = "" if alpha in (None, 1) else f"{literal(context.arguments.real('alpha', 1), dtype)} * "
    scaled = "left" if context.base == "rsub" else "right"
    context.emit(f"{{0}} {sign} {scale}{{1}}" if scaled == "right" else f"{{0}} - {scale}{{1}}", left, right)
    return True


def _divide(context: Context) -> bool:
    dtype = context.dtype
    left, right = (context.operand(p, dtype) for p in context.parameters[:2])
    mode = context.arguments.text("rounding_mode", "floor" if context.base == "floor_divide" else "")
    if left is None or right is None or not dtype.is_floating:
        return False
    around = {"floor": "floor@({0} / {1})", "trunc": "trunc@({0} / {1})"}
    context.emit(around.get(mode, "{0} / {1}"), left, right)
    return True


def _remainder(context: Context) -> bool:
    left, right = (context.operand(p, context.dtype) for p in context.parameters[:2])
    if left is None or right is None or not context.dtype.is_floating:
        return False
    rest = context.draft.map(context.draft.fresh("rest"), context.dtype, "fmod@({0}, {1})", left, right)
    context.emit(elementwise.REMAINDER, left, right, rest)
    return True


def _power(context: Context) -> bool:
    dtype = context.dtype
    left, right = (context.operand(p, dtype) for p in context.parameters[:2])
    if left is None or right is None:
        return False
    exponent = context.arguments.get(context.parameters[1])
    special = {0.5: "sqrt@({0})", 2: "{0} * {0}", 3: "{0} * {0} * {0}", -0.5: "rsqrt@({0})"}
    special |= {1: "{0}", -1: "1.0L / {0}", -2: "1.0L / ({0} * {0})"}
    if isinstance(exponent, int | float) and exponent in special:
        if not dtype.is_floating and exponent not in (1, 2, 3):
            return False
        context.emit(special[exponent], left)
        return True
    if not dtype.is_floating:
        return False
    context.emit("pow@({0}, {1})", left, right)
    return True


def _register(names: list[str], lowering: Lowering) -> None:
    LOWERINGS.update(dict.fromkeys(names, lowering))


_register([*elementwise.FLOAT_UNARY, *elementwise.ROUNDING, *elementwise.ANY_UNARY], _unary)
_register(list(elementwise.IDENTITY), _identity)
_register(list(elementwise.PREDICATES), _predicate)
_register(list(elementwise.COMPARISONS), _comparison)
_register([*elementwise.BINARY, *elementwise.FLOAT_BINARY], _binary)
_register(["add", "sub", "subtract", "rsub"], _add)
_register(["div", "divide", "floor_divide"], _divide)
_register(["remainder"], _remainder)
_register(["pow"], _power)
