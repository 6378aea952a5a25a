"""An exported fx graph turned into our Graph record.

Here: names, argument conversion, removal of dead and no-op nodes, refusal of what a Graph cannot say. Not here:
exporting (tools.graph_export).
Invariants: every value is a dense tensor of static shape and a known dtype; every node reaches an output or an
update; names are identifiers, state is named after the module's own names and inputs after forward's arguments.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch
from torch import fx
from torch._ops import OpOverload

from memory.errors import CaptureFailed
from memory.records import Argument, Graph, Node, SpecialArgument, StateEntry, TensorSpec
from tools.arrays import dtype_of, spec_of
from tools.graph_export import Exported, is_random, overload_name
from tools.user_module import DATA_DEPENDENT, check_tensor

_NO_OPS = frozenset(("alias", "detach", "lift_fresh", "lift_fresh_copy", "lift"))
_DROPPED_KEYWORDS = frozenset(("device", "layout", "pin_memory", "generator"))
_DATA_DEPENDENT = frozenset(("item", "_local_scalar_dense", "sym_size", "nonzero", "masked_select", "unique"))
_MEMORY_FORMATS = {
    torch.contiguous_format: "contiguous_format",
    torch.channels_last: "channels_last",
    torch.channels_last_3d: "channels_last_3d",
    torch.preserve_format: "preserve_format",
}


def to_graph(exported: Exported, path: str) -> Graph:
    """Convert an exported graph. `path` names the user's file in messages. Raises: CaptureFailed."""
    return _Conversion(exported, path).run()


@dataclass
class _Conversion:
    exported: Exported
    path: str
    names: dict[fx.Node, str] = field(default_factory=dict)
    """Value name of every single-tensor fx node."""
    taken: set[str] = field(default_factory=set)
    values: dict[str, TensorSpec] = field(default_factory=dict)
    live: set[fx.Node] = field(default_factory=set)

    def run(self) -> Graph:
        exported = self.exported
        by_name = {node.name: node for node in exported.graph.nodes}
        results = (*exported.outputs, *exported.updates, *exported.updates.values())
        self.live = _live(by_name[name] for name in results)
        inputs = tuple(self._name(by_name[p], own) for p, own in exported.inputs.items())
        state = tuple(
            StateEntry(value=self._name(by_name[place], target), target=target, kind=kind)
            for place, (target, kind) in exported.state.items()
            if by_name[place] in self.live
        )
        nodes = [self._convert(node) for node in exported.graph.nodes if node in self.live]
        return Graph(
            values=self.values,
            inputs=inputs,
            state=state,
            nodes=tuple(node for node in nodes if node is not None),
            outputs=tuple(self.names[by_name[name]] for name in exported.outputs),
            updates={self.names[by_name[b]]: self.names[by_name[v]] for b, v in exported.updates.items()},
        )

    def _convert(self, node: fx.Node) -> Node | None:
        """The record of one call; None for a node that only passes a value on."""
        if node.op != "call_function" or node.target is operator.getitem:
            return None
        op = node.target
        if not isinstance(op, OpOverload):
            raise self._unusable(node)
        short = overload_name(op)
        if short in _DATA_DEPENDENT:
            raise CaptureFailed(f"{self._place(node)}: {op}: {DATA_DEPENDENT}")
        if is_random(node):
            raise CaptureFailed(
                f"{self._place(node)}: {op} draws random numbers, so no result is right or wrong; call .eval() in the"
                " constructor, set p to 0, or pass the random tensor as an input"
            )
        if short in _NO_OPS or self._is_constant_copy(node, short):
            source = node.args[0]
            assert isinstance(source, fx.Node)
            self.names[node] = self.names[source]
            return None
        if op._schema.is_mutable:
            raise CaptureFailed(
                f"{self._place(node)}: {op} changes a tensor in place and could not be made functional"
            )
        outputs = self._outputs(node)
        return Node(
            name=next((o for o in outputs if o is not None), _identifier(node.name)),
            op=str(op),
            args=tuple(self._argument(value, node) for value in node.args),
            kwargs={k: self._argument(v, node) for k, v in node.kwargs.items() if k not in _DROPPED_KEYWORDS},
            outputs=outputs,
        )

    def _is_constant_copy(self, node: fx.Node, short: str) -> bool:
        """True for the copy that torch makes of a tensor literal before its first use."""
        source = node.args[0] if node.args else None
        if short != "clone" or not isinstance(source, fx.Node):
            return False
        return source.name in self.exported.state and self.exported.state[source.name][1] == "constant"

    def _outputs(self, node: fx.Node) -> tuple[str | None, ...]:
        value = node.meta["val"]
        if isinstance(value, torch.Tensor):
            return (self._name(node, node.name),)
        if not isinstance(value, list | tuple):
            raise CaptureFailed(f"{self._place(node)}: {node.target}: {DATA_DEPENDENT}")
        outputs: list[str | None] = []
        for position in range(len(value)):
            getters = [
                user
                for user in node.users
                if user.target is operator.getitem and user.args[1] == position and user in self.live
            ]
            outputs.append(
                self._name(getters[0], node.name + (f"_{position}" if position else "")) if getters else None
            )
            self.names |= dict.fromkeys(getters, self.names[getters[0]]) if getters else {}
        return tuple(outputs)

    def _name(self, node: fx.Node, wanted: str) -> str:
        """Give a tensor node its value name and record its spec."""
        tensor = node.meta.get("val")
        if tensor is None and node.op == "get_attr":
            tensor = self.exported.constants[str(node.target)]
        if not isinstance(tensor, torch.Tensor):
            raise CaptureFailed(f"{self._place(node)}: {node.target} makes something other than a tensor")
        if any(isinstance(size, torch.SymInt) for size in (*tensor.shape, *tensor.stride())):
            raise CaptureFailed(f"{self._place(node)}: {node.target}: {DATA_DEPENDENT}")
        check_tensor(tensor, f"{self._place(node)}: the result of {node.target}")
        base = name = _identifier(wanted)
        count = 1
        while name in self.taken:
            name, count = f"{base}_{count}", count + 1
        self.taken.add(name)
        self.names[node] = name
        self.values[name] = spec_of(tensor)
        return name

    def _argument(self, value: object, node: fx.Node) -> Argument:
        if isinstance(value, fx.Node):
            if value not in self.names:
                raise CaptureFailed(
                    f"{self._place(node)}: {node.target} reads {value.name}, which is not a tensor"
                )
            return self.names[value]
        if isinstance(value, list | tuple):
            return tuple(self._argument(item, node) for item in value)
        if isinstance(value, float) and not math.isfinite(value):
            return SpecialArgument(float="nan" if math.isnan(value) else "inf" if value > 0 else "-inf")
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            return SpecialArgument(text=value)
        if isinstance(value, torch.dtype) and dtype_of(value) is not None:
            return SpecialArgument(dtype=dtype_of(value))
        if isinstance(value, torch.memory_format):
            return SpecialArgument.model_validate({"memory_format": _MEMORY_FORMATS[value]})
        if isinstance(value, torch.device | torch.layout):
            return None
        raise CaptureFailed(f"{self._place(node)}: {node.target} takes {value!r}, which is not supported")

    def _unusable(self, node: fx.Node) -> CaptureFailed:
        if getattr(node.target, "__module__", "") in ("_operator", "math", "torch"):
            return CaptureFailed(f"{self._place(node)}: {DATA_DEPENDENT}")
        return CaptureFailed(
            f"{self._place(node)}: operation {node.target} is not supported; write it with torch operations"
        )

    def _place(self, node: fx.Node) -> str:
        """The user's file, with the line that made the node where its stack trace tells."""
        found = re.findall(rf'File "{re.escape(self.path)}", line (\d+)', node.meta.get("stack_trace") or "")
        return f"{self.path}:{found[-1]}" if found else self.path


def _live(roots: Iterable[fx.Node]) -> set[fx.Node]:
    """Nodes that the roots depend on."""
    seen: set[fx.Node] = set()
    pending = list(roots)
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending.extend(node.all_input_nodes)
    return seen


def _identifier(text: str) -> str:
    name = re.sub(r"\W", "_", text, flags=re.ASCII)[:180]
    return name if name and not name[0].isdigit() else f"m{name}"


def operations(graph: Graph) -> Sequence[tuple[str, int]]:
    """The operations in order, each with how many results it has; equal for a problem and its reduced twin.

    A split of fewer rows can give fewer parts, and a plan names every part.
    """
    return [(node.op, len(node.outputs)) for node in graph.nodes]
