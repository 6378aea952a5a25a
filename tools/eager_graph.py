"""The captured graph as a torch module that calls the same ATen operations: the eager baseline, and what torch.compile
is given.

Why not the user's own module: its file is host code that nobody checked, and has no place in the verifier's process.
The graph holds what eager dispatches (tools.graph_export), so that the same kernels run; only Python's own overhead
around them is less than the user's, which favours the baseline.
Does not cover: recurrent layers' flattened weights (cuDNN packs them again at every call).
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence

import torch
from torch import fx, nn

from memory.errors import BadInput
from memory.records import Graph, Node, references
from tools.arrays import widened
from tools.devices.library import argument_value
from tools.library_ops import resolve, why_not_called


class EagerGraph(nn.Module):
    """forward(*inputs) gives the outputs, then the updated buffers' new content, as a tuple."""

    def __init__(self, graph: Graph, state: Mapping[str, torch.Tensor], device: torch.device) -> None:
        """state: tensors by graph name, on the device. Raises BadInput for an operation that may not be called."""
        super().__init__()
        self._names = [entry.value for entry in graph.state]
        for position, name in enumerate(self._names):
            self.register_buffer(f"state_{position}", state[name])
        self.operations = operations(graph, device)

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The graph on these inputs, in the graph's order."""
        held = [getattr(self, f"state_{position}") for position in range(len(self._names))]
        result: tuple[torch.Tensor, ...] = self.operations(*inputs, *held)
        return result


def operations(graph: Graph, device: torch.device, *, widen: bool = False) -> fx.GraphModule:
    """A callable of the graph's inputs, then its state: its outputs, then the new content of updated buffers.

    widen: every narrower float dtype that an operation asks for becomes float64; given float64 tensors, the graph
    then computes in float64 throughout.
    Raises: BadInput for an operation that may not be called.
    """
    built = fx.Graph()
    values: dict[str, fx.Node] = {
        name: built.placeholder(name) for name in (*graph.inputs, *(e.value for e in graph.state))
    }
    for node in graph.nodes:
        made = next((graph.values[name] for name in node.outputs if name is not None), None)
        factory = (
            made is not None
            and made.dtype.is_floating
            and not references((*node.args, *node.kwargs.values()))
        )
        _add(built, node, values, device, widen=widen, floats=factory)
    built.output(tuple(values[name] for name in result_names(graph)))
    return fx.GraphModule(nn.Module(), built)


def result_names(graph: Graph) -> tuple[str, ...]:
    """Graph names of what the callables return, in order."""
    return (*graph.outputs, *graph.updates.values())


def _add(
    built: fx.Graph,
    node: Node,
    values: dict[str, fx.Node],
    device: torch.device,
    *,
    widen: bool,
    floats: bool,
) -> None:
    """floats: the operation makes floating values out of no tensor."""
    reason = why_not_called(node.op, node.args, node.kwargs)
    if reason is not None:
        raise BadInput(f"operation {node.op!r} of the captured graph may not be called: {reason}")
    operation = resolve(node.op)
    schema = operation._schema
    args = tuple(argument_value(a, values.__getitem__) for a in node.args)
    kwargs = {name: argument_value(a, values.__getitem__) for name, a in node.kwargs.items()}
    if any(argument.name == "device" for argument in schema.arguments):
        kwargs["device"] = device
    if widen:
        args = tuple(widened(a) for a in args)
        kwargs = {name: widened(a) for name, a in kwargs.items()}
        if floats and any(argument.name == "dtype" for argument in schema.arguments):
            # A factory that was given no dtype would make torch's default, float32.
            kwargs.setdefault("dtype", torch.float64)
    called = built.call_function(operation, args, kwargs)  # type: ignore[arg-type]
    if len(schema.returns) == 1 and str(schema.returns[0].type) == "Tensor":
        _bind(node.outputs, [called], values)
        return
    items = [
        None if name is None else built.call_function(operator.getitem, (called, position))
        for position, name in enumerate(node.outputs)
    ]
    _bind(node.outputs, items, values)


def _bind(names: Sequence[str | None], made: Sequence[fx.Node | None], values: dict[str, fx.Node]) -> None:
    for name, item in zip(names, made, strict=False):
        if name is not None and item is not None:
            values[name] = item
