"""Modules captured in this process, and their Programs run on the simulator against PyTorch.

Here: what the recipe tests share. Not here: the verifier itself (tools.evaluation); this only asks whether a
Program's results are as close to the float64 oracle as eager PyTorch's own.
"""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType

import torch
from torch import nn

from memory.errors import CaptureFailed
from memory.records import Graph, Problem, Program, Target
from tools.arrays import Array, array_from, torch_dtype
from tools.correctness import Subject, Tolerance, compare
from tools.devices.port import Device, Executed, Fault
from tools.graph_capture import to_graph
from tools.graph_export import export
from tools.lint import lint
from tools.program import validate
from tools.recipes.blueprints import blueprints, build
from tools.recipes.kernels import Variant
from tools.reduction import Shapes, shrink
from tools.user_module import UserModule
from tools.work import count_work


def _silent(_stage: str) -> None:
    """Progress that nobody watches."""


@dataclass
class Captured:
    """A module with inputs, and the problem made of them."""

    module: nn.Module
    inputs: tuple[torch.Tensor, ...]
    problem: Problem
    constants: dict[str, torch.Tensor] = field(default_factory=dict)
    """Tensor literals of forward, by the exporter's own names."""


_TARGET = Target(path="/nowhere/module.py", source="", class_name="Model")


def captured(module: nn.Module, *inputs: torch.Tensor) -> Captured:
    """Capture as tools.problem does, without its child process."""
    place = ModuleType("warpsmith_test_target")
    place.Model = type(module)  # type: ignore[attr-defined]
    user = UserModule(_TARGET, place, _silent)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch.export's own use of a name it deprecates
        exported = export(user, module, inputs)
    graph = to_graph(exported, _TARGET.path)
    return Captured(module, inputs, problem_of(graph, training=module.training), exported.constants)


def problem_of(graph: Graph, *, training: bool) -> Problem:
    """The problem of a captured graph."""
    return Problem(
        name="test",
        target=_TARGET,
        training=training,
        output_structure="tuple",
        graph=graph,
        work=count_work(graph),
    )


def twin_of(subject: Captured) -> Captured | None:
    """The same module captured at a third of its inputs' elements, or as few as its operations allow; None where it
    runs at no smaller shapes.

    Integer inputs, which are mostly indices, are cut to 0 and 1.
    """
    nodes = [(node.op, node.outputs) for node in subject.problem.graph.nodes]

    def inputs(shapes: Shapes) -> list[torch.Tensor]:
        return [_cut(tensor, shape) for tensor, shape in zip(subject.inputs, shapes, strict=True)]

    def measure(shapes: Shapes) -> int | None:
        try:
            with torch.no_grad():
                subject.module(*inputs(shapes))
        except (RuntimeError, ValueError, IndexError, AssertionError):
            return None
        return sum(tensor.numel() for tensor in inputs(shapes))

    @cache
    def at(shapes: Shapes) -> Captured | None:
        try:
            return captured(subject.module, *inputs(shapes))
        except CaptureFailed:
            return None

    def accepts(shapes: Shapes) -> bool:
        found = at(shapes)
        return found is not None and [(n.op, n.outputs) for n in found.problem.graph.nodes] == nodes

    now = tuple(tuple(tensor.shape) for tensor in subject.inputs)
    limit = sum(tensor.numel() for tensor in subject.inputs) // 3
    found = shrink(now, limit=limit, measure=measure, accepts=accepts)
    return None if found is None else at(found)


def _cut(tensor: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    part = tensor[tuple(slice(0, size) for size in shape)].clone()
    return part if part.is_floating_point() or part.dtype is torch.bool else part % 2


def given_arrays(subject: Captured) -> dict[str, Array]:
    """Inputs and state by graph name."""
    graph = subject.problem.graph
    arrays = {n: _array(t) for n, t in zip(graph.inputs, subject.inputs, strict=True)}
    state = {**dict(subject.module.named_parameters()), **dict(subject.module.named_buffers())}
    state |= subject.constants
    for entry in graph.state:
        arrays[entry.value] = _array(state[entry.target].detach())
    return arrays


def _array(tensor: torch.Tensor) -> Array:
    return array_from(tensor)


def eager_results(subject: Captured, *, double: bool) -> dict[str, torch.Tensor]:
    """Outputs and updated state by graph name, in the module's own precision or in float64."""
    module = copy.deepcopy(subject.module)
    inputs: Sequence[torch.Tensor] = [t.clone() for t in subject.inputs]
    if double:
        module = module.double()
        inputs = [t.double() if t.is_floating_point() else t for t in inputs]
    with torch.no_grad():
        returned = module(*inputs)
    results = [returned] if isinstance(returned, torch.Tensor) else list(returned)
    graph = subject.problem.graph
    named = dict(zip(graph.outputs, results, strict=True))
    buffers = dict(module.named_buffers())
    targets = {entry.value: entry.target for entry in graph.state}
    named |= {value: buffers[targets[state]] for state, value in graph.updates.items()}
    return named


def complaints(subject: Captured, program: Program, device: Device, *, sanitize: bool = True) -> list[str]:
    """Everything wrong with `program`: validation, lint, compile, faults and values; empty where it is right."""
    plan, found = validate(program, subject.problem, device.gpu)
    if plan is None or found:
        return [f"{d.rule}: {d.message}" for d in found]
    severe = [
        f for f in lint(program.source, plan.entries, tuple(plan.defines.items())) if f.severity == "severe"
    ]
    if severe:
        return [f"lint {f.rule} line {f.line}: {f.message}" for f in severe]
    loaded = device.load(plan)
    if isinstance(loaded, Fault):
        return [f"load: {d.message}\n{d.excerpt}" for d in loaded.diagnostics]
    executed = loaded.execute(given_arrays(subject), sanitize=sanitize)
    if isinstance(executed, Fault):
        return [f"{executed.status}: {d.rule} line {d.line}: {d.message}" for d in executed.diagnostics]
    return list(_wrong_values(subject, program, executed))


def _wrong_values(subject: Captured, program: Program, executed: Executed) -> Iterator[str]:
    graph: Graph = subject.problem.graph
    oracle, eager = eager_results(subject, double=True), eager_results(subject, double=False)
    pairs = [*zip(program.outputs, graph.outputs, strict=True)]
    pairs += [(mine, graph.updates[state]) for state, mine in program.updates.items()]
    for mine, wanted in pairs:
        dtype = graph.values[wanted].dtype
        expected = oracle[wanted]
        expected = expected.double() if dtype.is_floating else expected.to(torch_dtype(dtype))
        judged = compare(
            executed.results[mine],
            Subject(
                wanted,
                "normal",
                dtype,
                array_from(expected.contiguous()),
                array_from(eager[wanted].contiguous()),
            ),
            Tolerance(),
        )
        if judged.complaint is not None:
            yield f"{wanted}: {judged.complaint.message}"


class Function(nn.Module):
    """A module whose forward is a plain function."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> object:
        """Call the function."""
        return self.function(*inputs)


def with_variant(problem: Problem, variant: Variant, twin: Problem | None = None) -> Program:
    """The fully fused Program with one variant wherever it is possible."""
    first = blueprints(problem, twin)[0]
    everywhere = {f"R{index}": variant for index in range(50)}
    return build(problem, dataclasses.replace(first, variants=everywhere), twin)
