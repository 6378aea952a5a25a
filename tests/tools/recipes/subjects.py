"""Modules captured in this process, and their Programs run on the simulator against PyTorch.

Here: what the recipe tests share. Not here: the verifier itself (tools.evaluation); this only asks whether a
Program's results are as close to the float64 oracle as eager PyTorch's own.
"""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType

import torch
from torch import nn

from memory.records import Graph, Problem, Program, Target, Work
from tools.arrays import Array, array_from, torch_dtype
from tools.correctness import Subject, Tolerance, compare
from tools.devices.port import Device, Executed, Fault
from tools.graph_capture import to_graph
from tools.graph_export import export
from tools.lint import lint
from tools.program import validate
from tools.recipes.blueprints import blueprints, build
from tools.recipes.kernels import Variant
from tools.user_module import UserModule


def _silent(_stage: str) -> None:
    """Progress that nobody watches."""


@dataclass
class Captured:
    """A module with inputs, and the problem made of them."""

    module: nn.Module
    inputs: tuple[torch.Tensor, ...]
    problem: Problem


def captured(module: nn.Module, *inputs: torch.Tensor) -> Captured:
    """Capture as tools.problem does, without its child process."""
    target = Target(path="/nowhere/module.py", source="", class_name="Model")
    place = ModuleType("warpsmith_test_target")
    place.Model = type(module)  # type: ignore[attr-defined]
    user = UserModule(target, place, _silent)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch.export's own use of a name it deprecates
        graph = to_graph(export(user, module, inputs), target.path)
    problem = Problem(
        name="test",
        target=target,
        training=module.training,
        output_structure="tuple",
        graph=graph,
        work=Work(flops=0, min_bytes=0),
    )
    return Captured(module, inputs, problem)


def given_arrays(subject: Captured) -> dict[str, Array]:
    """Inputs and state by graph name."""
    graph = subject.problem.graph
    arrays = {n: _array(t) for n, t in zip(graph.inputs, subject.inputs, strict=True)}
    state = {**dict(subject.module.named_parameters()), **dict(subject.module.named_buffers())}
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
