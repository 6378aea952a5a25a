"""torch.export's view of a module: functional ATen operations with their inputs, state, outputs and updates.

Here: everything that depends on torch.export and make_fx. Not here: our Graph record (tools.graph_capture).
Invariants: operations are what eager PyTorch dispatches, except that attention and recurrent layers stay whole,
because what they become differs by device; nothing mutates, nothing is random, nothing reads uninitialised memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Literal

import torch
from torch import fx, nn
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument
from torch.fx.experimental.proxy_tensor import make_fx

from memory.errors import CaptureFailed
from tools.user_module import DataDependent, UserModule, user_code

Kind = Literal["parameter", "buffer", "constant"]

WHOLE = frozenset(("scaled_dot_product_attention", "lstm", "gru", "rnn_tanh", "rnn_relu"))
"""Composite operations kept as one node."""
_DROPOUTS = frozenset(("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"))
_INITIALISED: dict[OpOverload, OpOverload] = {
    torch.ops.aten.empty.memory_format: torch.ops.aten.zeros.default,
    torch.ops.aten.empty_strided.default: torch.ops.aten.zeros.default,
    torch.ops.aten.empty_permuted.default: torch.ops.aten.zeros.default,
    torch.ops.aten.empty_like.default: torch.ops.aten.zeros_like.default,
    torch.ops.aten.new_empty.default: torch.ops.aten.new_zeros.default,
    torch.ops.aten.new_empty_strided.default: torch.ops.aten.new_zeros.default,
}
"""Makers of uninitialised memory, and what stands for them in a graph."""
_LEADING = {
    torch.ops.aten.empty_strided.default: 1,
    torch.ops.aten.empty_permuted.default: 1,
    torch.ops.aten.new_empty_strided.default: 2,
}
"""How many of the maker's positional arguments its stand-in takes, where it takes fewer."""
_KINDS: dict[InputKind, Kind] = {
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
}


@dataclass(frozen=True)
class Exported:
    """An fx graph with the meaning of its placeholders and results, by fx node name."""

    graph: fx.Graph
    inputs: dict[str, str]
    """Placeholder of a tensor input -> name of forward's argument, in order."""
    state: dict[str, tuple[str, Kind]]
    """Placeholder or attribute node -> the module's own name for the tensor."""
    outputs: tuple[str, ...]
    updates: dict[str, str]
    """Placeholder of a buffer -> the node whose value it holds afterwards."""
    constants: dict[str, torch.Tensor] = field(default_factory=dict)
    """By the names in `state`."""


def export(user: UserModule, module: nn.Module, inputs: Sequence[object]) -> Exported:
    """Export forward on example (or fake) inputs, in the module's current mode and without gradients.

    Raises: CaptureFailed for control flow on data, random operations and inputs changed in place.
    """
    try:
        with user_code(user, "torch.export of forward"), torch.no_grad():
            program = torch.export.export(module, tuple(inputs), strict=False)
            _resolve_dropout(program.graph)
            program = program.run_decompositions(dict(_decompositions()))
            _initialise(program.graph)
    except DataDependent:
        raise
    except CaptureFailed as first:
        try:
            return _trace(user, module, inputs)
        except CaptureFailed as second:
            raise CaptureFailed(f"{first}; tracing it instead failed too: {second}") from first
    return _read_signature(program, user, len(inputs))


def overload_name(op: OpOverload) -> str:
    """`addmm` of `aten.addmm.default`."""
    return op._schema.name.partition("::")[2]


def argument(node: fx.Node, name: str) -> object:
    """An operation's argument by its schema's name, or its default."""
    op = node.target
    assert isinstance(op, OpOverload)
    for position, formal in enumerate(op._schema.arguments):
        if formal.name == name:
            if position < len(node.args):
                return node.args[position]
            return node.kwargs.get(name, formal.default_value)
    return None


def is_random(node: fx.Node) -> bool:
    """True for an operation that draws random numbers as it is called here."""
    op = node.target
    if not isinstance(op, OpOverload):
        return False
    name = overload_name(op)
    if name == "scaled_dot_product_attention":
        return bool(argument(node, "dropout_p"))
    if name in WHOLE:
        return bool(argument(node, "dropout")) and bool(argument(node, "train"))
    if name in _DROPOUTS:
        return bool(argument(node, "p")) and bool(argument(node, "train"))
    if name == "native_dropout":
        return bool(argument(node, "p")) and argument(node, "train") is not False
    if name.startswith("_scaled_dot_product"):
        return bool(argument(node, "dropout_p"))
    if name == "rrelu_with_noise_functional":
        return bool(argument(node, "training"))
    return torch.Tag.nondeterministic_seeded in op.tags


def _resolve_dropout(graph: fx.Graph) -> None:
    """Make inactive dropout what eager makes of it: its own input (the decomposition would copy)."""
    for node in graph.nodes:
        if (
            isinstance(node.target, OpOverload)
            and overload_name(node.target) in _DROPOUTS
            and not is_random(node)
        ):
            node.target = torch.ops.aten.alias.default
            node.args = node.args[:1]
            node.kwargs = {}


def _initialise(graph: fx.Graph) -> None:
    """Zeros instead of uninitialised memory, which forward writes over before it reads: results are the same, and no
    plan or oracle can pick up what lies about."""
    for node in graph.nodes:
        if node.op == "call_function" and node.target in _INITIALISED:
            node.args = node.args[: _LEADING.get(node.target, len(node.args))]
            maker = _INITIALISED[node.target]
            known = {formal.name for formal in maker._schema.arguments}
            node.kwargs = {name: value for name, value in node.kwargs.items() if name in known}
            node.target = maker


@cache
def _decompositions() -> Mapping[OpOverload, Callable[..., object]]:
    """Decompositions of composite operations only: what eager's dispatcher itself would do."""
    table = torch.export.default_decompositions()
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    rules: dict[OpOverload, Callable[..., object]] = {
        op: rule
        for op, rule in table.items()  # type: ignore[no-untyped-call]
        if isinstance(op, OpOverload)
        and op.has_kernel_for_dispatch_key(composite)
        and overload_name(op) not in WHOLE
    }
    pad = torch.ops.aten.pad.default
    return rules | {
        pad: partial(_pad, rules[pad]),
        torch.ops.aten._pad_circular.default: _pad_circular,
    }


def _pad(
    rule: Callable[..., object],
    source: torch.Tensor,
    pad: Sequence[int],
    mode: str = "constant",
    value: float | None = None,
) -> object:
    return _pad_circular(source, pad) if mode == "circular" else rule(source, pad, mode, value)


def _pad_circular(source: torch.Tensor, pad: Sequence[int]) -> torch.Tensor:
    """Concatenations. PyTorch writes the parts into one tensor, of which a functional graph would make whole copies.

    pad: (low, high) for the last dimension, then the one before it, and so on; negative ones crop.
    """
    ends = [(-1 - i, pad[2 * i], pad[2 * i + 1]) for i in range(len(pad) // 2)]
    for axis, low, high in ends:
        if low < 0 or high < 0:
            source = source.narrow(axis, max(-low, 0), source.shape[axis] + min(low, 0) + min(high, 0))
    for axis, low, high in ends:
        size = source.shape[axis]
        before = [source.narrow(axis, size - low, low)] if low > 0 else []
        after = [source.narrow(axis, 0, high)] if high > 0 else []
        source = torch.cat([*before, source, *after], axis) if before or after else source
    return source


def _read_signature(program: ExportedProgram, user: UserModule, count: int) -> Exported:
    names = iter(user.input_names(count))
    inputs: dict[str, str] = {}
    state: dict[str, tuple[str, Kind]] = {}
    for spec in program.graph_signature.input_specs:
        own = next(names) if spec.kind is InputKind.USER_INPUT else ""
        if isinstance(spec.arg, ConstantArgument) or spec.kind is InputKind.TOKEN:
            continue  # a token orders what only raises or prints, such as the check for a singular matrix
        if spec.kind is InputKind.USER_INPUT and isinstance(spec.arg, TensorArgument):
            inputs[spec.arg.name] = own
        elif spec.kind in _KINDS and spec.target is not None:
            state[spec.arg.name] = (spec.target, _KINDS[spec.kind])
        else:
            raise CaptureFailed(
                f"{user.target.path}: forward uses a {spec.kind.name.lower()}, which is not supported"
            )
    holders = {target: placeholder for placeholder, (target, _) in state.items()}
    outputs: list[str] = []
    updates: dict[str, str] = {}
    for result in program.graph_signature.output_specs:
        if result.kind is OutputKind.TOKEN:
            continue
        if result.kind is OutputKind.USER_OUTPUT:
            if not isinstance(result.arg, TensorArgument):
                raise CaptureFailed(f"{user.target.path}: forward returns something other than tensors")
            outputs.append(result.arg.name)
        elif result.kind is OutputKind.BUFFER_MUTATION and result.target is not None:
            updates[holders[result.target]] = result.arg.name
        elif result.kind is OutputKind.USER_INPUT_MUTATION:
            raise CaptureFailed(_changes_input(user, str(result.target)))
        else:
            what = f"{result.kind.name.lower()} of {result.target!r}"
            raise CaptureFailed(f"{user.target.path}: forward makes a {what}, which is not supported")
    constants = {name: value for name, value in program.constants.items() if isinstance(value, torch.Tensor)}
    return Exported(program.graph, inputs, state, tuple(outputs), updates, constants)


def _changes_input(user: UserModule, name: str) -> str:
    return (
        f"{user.target.path}: forward changes its input {name!r} in place; compute a new tensor instead (for"
        " ReLU(inplace=True) on an input: inplace=False)"
    )


def _trace(user: UserModule, module: nn.Module, inputs: Sequence[object]) -> Exported:
    """Fallback: record what forward dispatches, on fake tensors, with mutations made functional."""
    state: dict[str, torch.Tensor] = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    parameters = {name for name, _ in module.named_parameters()}
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]

    def flat(values: list[torch.Tensor], given: list[torch.Tensor]) -> object:
        rest = iter(given)
        arguments = tuple(next(rest) if isinstance(v, torch.Tensor) else v for v in inputs)
        return torch.func.functional_call(module, dict(zip(state, values, strict=True)), arguments)

    with user_code(user, "forward"), torch.no_grad():
        functional = torch.func.functionalize(flat, remove="mutations")
        traced = make_fx(functional, tracing_mode="fake")(list(state.values()), tensors)
    _initialise(traced.graph)
    places = [node for node in traced.graph.nodes if node.op == "placeholder"]
    own = [
        n for n, v in zip(user.input_names(len(inputs)), inputs, strict=True) if isinstance(v, torch.Tensor)
    ]
    meaning: dict[str, tuple[str, Kind]] = {
        node.name: (name, "parameter" if name in parameters else "buffer")
        for node, name in zip(places, state, strict=False)
    }
    given = {node.name: name for node, name in zip(places[len(state) :], own, strict=True)}
    constants: dict[str, torch.Tensor] = {}
    for node in traced.graph.nodes:
        if node.op == "get_attr":
            constants[str(node.target)] = getattr(traced, str(node.target))
            meaning[node.name] = (str(node.target), "constant")
    updates = _written_back(traced.graph, user, given)
    return Exported(traced.graph, given, meaning, _results(traced.graph, user), updates, constants)


def _written_back(graph: fx.Graph, user: UserModule, given: dict[str, str]) -> dict[str, str]:
    updates: dict[str, str] = {}
    for node in graph.nodes:
        if node.target is torch.ops.aten.copy_.default and isinstance(node.args[0], fx.Node):
            written, value = node.args[0], node.args[1]
            if written.name in given:
                raise CaptureFailed(_changes_input(user, given[written.name]))
            if written.op == "placeholder" and isinstance(value, fx.Node):
                updates[written.name] = value.name
        if (
            isinstance(node.target, OpOverload)
            and overload_name(node.target) == "native_batch_norm"
            and node.args[5]
        ):
            raise CaptureFailed(
                f"{user.target.path}: batch norm in training mode cannot be traced; call .eval()"
            )
    return updates


def _results(graph: fx.Graph, user: UserModule) -> tuple[str, ...]:
    returned = next(node for node in graph.nodes if node.op == "output").args[0]
    flat = returned if isinstance(returned, list | tuple) else (returned,)
    if not all(isinstance(value, fx.Node) for value in flat):
        raise CaptureFailed(f"{user.target.path}: forward returns something other than tensors")
    return tuple(value.name for value in flat if isinstance(value, fx.Node))
