"""The Problem: the user's module, how to build it again, and its captured graph."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from memory.record import Argument, DType, Identifier, Record, TensorSpec


class Node(Record):
    """One ATen operation of the captured graph."""

    name: Identifier
    op: str
    """Qualified overload, such as `aten.addmm.default`."""
    args: tuple[Argument, ...] = ()
    kwargs: dict[str, Argument] = {}
    outputs: tuple[Identifier | None, ...]
    """Names of the values it makes, in the schema's order; None where a result is unused or absent."""


class StateEntry(Record):
    """A parameter, buffer or constant of the module, as the graph names it."""

    value: Identifier
    """Name in `Graph.values`."""
    target: str
    """Name in the module's `state_dict`, such as `norm.weight`; for constants, the exporter's own name."""
    kind: Literal["parameter", "buffer", "constant"]


class Graph(Record):
    """The captured forward as functional ATen operations in execution order."""

    values: dict[Identifier, TensorSpec]
    inputs: tuple[Identifier, ...]
    """Tensor inputs of `forward`, in order."""
    state: tuple[StateEntry, ...] = ()
    nodes: tuple[Node, ...]
    outputs: tuple[Identifier, ...]
    updates: dict[Identifier, Identifier] = {}
    """Buffers that forward changes (batch-norm statistics): state value -> the value it holds afterwards."""

    @model_validator(mode="after")
    def _names_resolve(self) -> Graph:
        known = set(self.inputs) | {s.value for s in self.state}
        for node in self.nodes:
            missing = [r for r in references((*node.args, *node.kwargs.values())) if r not in known]
            if missing:
                raise ValueError(f"node {node.name!r} reads {missing[0]!r} before it is made")
            known |= {o for o in node.outputs if o is not None}
        for name in (*self.outputs, *self.updates, *self.updates.values()):
            if name not in known:
                raise ValueError(f"{name!r} is returned or updated but never made")
        unknown = known - set(self.values)
        if unknown:
            raise ValueError(f"no tensor spec for {sorted(unknown)[0]!r}")
        return self


def references(arguments: tuple[Argument, ...]) -> list[str]:
    """Tensor names in `arguments`, in order, lists included."""
    names: list[str] = []
    for argument in arguments:
        if isinstance(argument, str):
            names.append(argument)
        elif isinstance(argument, tuple):
            names.extend(references(argument))
    return names


class Target(Record):
    """How to build the user's module again: the file's text, the class, and where its arguments come from."""

    LABELS: ClassVar[frozenset[str]] = frozenset({"path"})

    path: str
    """Absolute path the text was read from; its folder is importable to the module."""
    source: str
    class_name: Identifier
    inputs: str | None = None
    """Input specification such as `f32[16,1024],i64[16]`; None where the file's `get_inputs` is used."""
    init: str | None = None
    """Constructor arguments as a Python literal list or dict; None where `get_init_inputs` is used."""


class Work(Record):
    """What one forward must do at least, and does in eager PyTorch."""

    flops: Annotated[int, Field(ge=0)]
    """Floating-point operations; one fused multiply-add counts 2."""
    min_bytes: Annotated[int, Field(ge=0)]
    """Each input and parameter that is read, once, plus each output, once."""


class Problem(Record):
    """The user's module with its example inputs and captured graph."""

    LABELS: ClassVar[frozenset[str]] = frozenset({"name"})

    name: str
    target: Target
    training: bool
    """The module's `training` flag as its author left it."""
    output_structure: Literal["tensor", "tuple", "list"]
    graph: Graph
    work: Work
    reduced_from: dict[str, tuple[int, ...]] | None = None
    """For a scaled-down twin: the original shapes of the inputs that were shrunk."""

    @property
    def dtype(self) -> DType:
        """The widest floating dtype among inputs, state and outputs, or the first output's dtype."""
        graph = self.graph
        names = (*graph.inputs, *(s.value for s in graph.state), *graph.outputs)
        found = [graph.values[n].dtype for n in names if graph.values[n].dtype.is_floating]
        return max(found, key=lambda d: d.bytes) if found else graph.values[graph.outputs[0]].dtype
