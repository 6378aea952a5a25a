"""A Program bound to a Problem: every expression evaluated, every tensor given a shape. Pure.

Here: what a plan means at one set of shapes. Not here: whether it is allowed to run (tools.program) or how it runs
(tools.devices). Binding the same Program to a reduced Problem gives the plan that a slow device verifies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memory.records import (
    Argument,
    Buffer,
    KernelStep,
    LibraryStep,
    Problem,
    Program,
    ScalarArgument,
    ScalarType,
    SpecialArgument,
    Step,
    TensorSpec,
    references,
)
from tools.expressions import ExpressionError, Scope, evaluate


class BindError(ValueError):
    """An expression of the plan has no value at these shapes; names the place and the expression."""


@dataclass(frozen=True)
class BoundTensor:
    """A buffer of the plan with its numbers."""

    name: str
    spec: TensorSpec
    contiguous: bool
    """False where the buffer is whatever a library call returns (a view)."""
    zero: bool


@dataclass(frozen=True)
class BoundScalar:
    """A number given to a kernel by value."""

    ctype: ScalarType
    value: int | float


@dataclass(frozen=True)
class BoundKernel:
    """One launch in numbers; a string argument is a tensor's name."""

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    args: tuple[str | BoundScalar, ...]


@dataclass(frozen=True)
class BoundLibrary:
    """One ATen operation with its expressions evaluated."""

    op: str
    args: tuple[Argument, ...]
    kwargs: Mapping[str, Argument]
    outputs: tuple[str | None, ...]

    @property
    def reads(self) -> list[str]:
        """Tensor names it reads."""
        return references((*self.args, *self.kwargs.values()))


BoundStep = BoundKernel | BoundLibrary


@dataclass(frozen=True)
class BoundPlan:
    """A Program at one set of shapes, ready to compile and run."""

    source: str
    defines: Mapping[str, str]
    given: Mapping[str, TensorSpec]
    """Inputs and state."""
    inputs: tuple[str, ...]
    """Which of `given` are inputs; the rest is state."""
    buffers: Mapping[str, BoundTensor]
    prepare: tuple[BoundStep, ...]
    steps: tuple[BoundStep, ...]
    outputs: tuple[str, ...]
    updates: Mapping[str, str]
    replay: bool = False
    """Timed and exported as a CUDA graph."""

    @property
    def entries(self) -> tuple[str, ...]:
        """Kernel names launched, each once, in first-use order."""
        steps = (*self.prepare, *self.steps)
        return tuple(dict.fromkeys(s.entry for s in steps if isinstance(s, BoundKernel)))

    def spec(self, name: str) -> TensorSpec:
        """Spec of an input, state entry or buffer. Raises KeyError for an unknown name."""
        return self.given[name] if name in self.given else self.buffers[name].spec

    @property
    def results(self) -> tuple[str, ...]:
        """Names whose content the caller gets: outputs, then updated state, each once."""
        return tuple(dict.fromkeys((*self.outputs, *self.updates.values())))


def given_tensors(problem: Problem) -> dict[str, TensorSpec]:
    """Specs of the problem's inputs and state, by graph name."""
    graph = problem.graph
    names = (*graph.inputs, *(entry.value for entry in graph.state))
    return {name: graph.values[name] for name in names}


def bind(program: Program, problem: Problem) -> BoundPlan:
    """Evaluate every expression of `program` at the shapes of `problem`. Raises BindError."""
    given = given_tensors(problem)
    numbers = program.tunable_values()
    for name, text in program.dims.items():
        numbers[name] = _number(text, Scope(numbers, given), f"dims.{name}")
    buffers: dict[str, BoundTensor] = {}
    for buffer in program.buffers:
        buffers[buffer.name] = _bind_buffer(buffer, Scope(numbers, _specs(given, buffers)))
    scope = Scope(numbers, _specs(given, buffers))
    return BoundPlan(
        source=program.source,
        defines={name: str(value) for name, value in numbers.items()},
        given=given,
        inputs=problem.graph.inputs,
        buffers=buffers,
        prepare=tuple(_bind_step(s, scope, f"prepare[{i}]") for i, s in enumerate(program.prepare)),
        steps=tuple(_bind_step(s, scope, f"steps[{i}]") for i, s in enumerate(program.steps)),
        outputs=program.outputs,
        updates=program.updates,
        replay=program.replay,
    )


def _specs(given: Mapping[str, TensorSpec], buffers: Mapping[str, BoundTensor]) -> dict[str, TensorSpec]:
    return {**given, **{name: buffer.spec for name, buffer in buffers.items()}}


def _number(text: str, scope: Scope, place: str) -> int:
    try:
        return evaluate(text, scope)
    except ExpressionError as error:
        raise BindError(f"{place}: {error}") from error


def _bind_buffer(buffer: Buffer, scope: Scope) -> BoundTensor:
    place = f"buffers.{buffer.name}.shape"
    shape = tuple(_number(text, scope, place) for text in buffer.shape)
    if any(size < 0 for size in shape):
        raise BindError(f"{place}: {shape} has a negative size")
    spec = TensorSpec.dense(shape, buffer.dtype)
    return BoundTensor(buffer.name, spec, buffer.layout == "contiguous", buffer.zero)


def _bind_step(step: Step, scope: Scope, place: str) -> BoundStep:
    if isinstance(step, KernelStep):
        return BoundKernel(
            entry=step.entry,
            grid=_triple(step.grid, scope, f"{place}.grid"),
            block=_triple(step.block, scope, f"{place}.block"),
            shared_bytes=_number(step.shared_bytes, scope, f"{place}.shared_bytes"),
            args=tuple(_bind_kernel_argument(a, scope, place) for a in step.args),
        )
    return _bind_library(step, scope, place)


def _triple(texts: tuple[str, str, str], scope: Scope, place: str) -> tuple[int, int, int]:
    x, y, z = (_number(text, scope, place) for text in texts)
    return x, y, z


def _bind_kernel_argument(argument: str | ScalarArgument, scope: Scope, place: str) -> str | BoundScalar:
    if isinstance(argument, str):
        return argument
    if isinstance(argument.value, float):
        return BoundScalar(argument.ctype, argument.value)
    value = _number(argument.value, scope, f"{place}.args")
    return BoundScalar(argument.ctype, float(value) if argument.ctype in ("float", "double") else value)


def _bind_library(step: LibraryStep, scope: Scope, place: str) -> BoundLibrary:
    def bound(argument: Argument) -> Argument:
        if isinstance(argument, tuple):
            return tuple(bound(item) for item in argument)
        if isinstance(argument, SpecialArgument) and argument.expression is not None:
            return _number(argument.expression, scope, f"{place} ({step.op})")
        return argument

    return BoundLibrary(
        op=step.op,
        args=tuple(bound(a) for a in step.args),
        kwargs={name: bound(a) for name, a in step.kwargs.items()},
        outputs=step.outputs,
    )
