"""What a capture's child process does: run the user's file once, export forward, shrink a twin.

Here: the order of work and the fake tensors that stand for inputs too large to hold. Not here: process limits
(tools.child), the search for smaller shapes (tools.reduction).
Covers: huge inputs and parameters (shapes are found without memory); constructors that read values (built for
real then); tensors that look plain only while they are fake (up to REAL_ELEMENTS). Does not cover: constructors whose
parameters' shapes depend on random values.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from memory.errors import BadInput, CaptureFailed
from memory.records import Problem
from tools.arrays import spec_of
from tools.capture_records import CaptureReply, CaptureRequest
from tools.child_loop import Progress
from tools.graph_capture import operations, to_graph
from tools.graph_export import export
from tools.reduction import Shapes, resized, shrink
from tools.user_module import UserModule, check_tensor, load, seed_everything, user_code
from tools.work import count_work

REAL_ELEMENTS = 1 << 24
"""Inputs, or parameters and buffers, up to this many elements are also made once with their values."""

Structure = Literal["tensor", "tuple", "list"]


@dataclass(frozen=True)
class Example:
    """A module with inputs that have shapes and no data."""

    user: UserModule
    module: nn.Module
    inputs: tuple[object, ...]
    mode: FakeTensorMode
    fake: bool
    """True where the module's own tensors have no data either."""

    @property
    def shapes(self) -> Shapes:
        """Shapes of the tensor inputs, in order."""
        return tuple(tuple(v.shape) for v in self.inputs if isinstance(v, torch.Tensor))

    def forward(self) -> object:
        """Run forward on shapes alone."""
        with user_code(self.user, "forward"), self.mode, torch.no_grad():
            result: object = self.module(*self.inputs)
        return result

    def renewed(self) -> Example:
        """With the module built again: a forward may leave marks on the one it ran on (counters, caches)."""
        with self.mode if self.fake else nullcontext():
            return replace(self, module=self.user.build())

    def at(self, shapes: Shapes) -> Example:
        """The same module with inputs of other shapes, same dtypes and order of dimensions in memory."""
        rest = iter(shapes)
        with self.mode:
            return replace(self, inputs=tuple(_like(v, rest) for v in self.inputs))


def make(progress: Progress) -> CaptureHandler:
    """The handler that tools.child_loop asks for."""
    return CaptureHandler(progress)


class CaptureHandler:
    """Answers CaptureRequests with CaptureReplies."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def handle(self, request: bytes) -> bytes:
        """Capture one target."""
        wanted = CaptureRequest.model_validate_json(request)
        seed_everything(0)
        example = build(load(wanted.target, self._progress))
        structure = _structure(example.forward(), wanted.target.path)
        problem = _problem(example, structure)
        reduced = None
        if wanted.reduce_above is not None:
            reduced = _reduce(example, problem, wanted.reduce_above)
        return CaptureReply(problem=problem, reduced=reduced).model_dump_json().encode()


def build(user: UserModule) -> Example:
    """Build module and inputs on fake tensors; for real where the file's code needs values."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    try:
        with mode:
            example = Example(user, user.build(), tuple(user.inputs()), mode, fake=True)
    except BadInput:
        module = user.build()
        inputs = user.inputs()
    else:
        _refuse_what_fakes_hide(example)
        return example
    fake = tuple(mode.from_tensor(v) if isinstance(v, torch.Tensor) else v for v in inputs)
    return Example(user, module, fake, mode, fake=False)


def _refuse_what_fakes_hide(example: Example) -> None:
    """A fake quantized or masked tensor looks like a plain one, so make them with their values and look again.

    Raises: CaptureFailed for one that Programs cannot hold.
    """
    if sum(_count(shape) for shape in example.shapes) <= REAL_ELEMENTS:
        example.user.inputs()
    if sum(tensor.numel() for _, tensor in _state_of(example.module)) <= REAL_ELEMENTS:
        _check_state(example.user, example.user.build())
    seed_everything(0)


def _check_state(user: UserModule, module: nn.Module) -> None:
    for name, tensor in _state_of(module):
        check_tensor(tensor, f"{user.target.path}: {name}")


def _state_of(module: nn.Module) -> list[tuple[str, torch.Tensor]]:
    return [*module.named_parameters(), *module.named_buffers()]


def _problem(example: Example, structure: Structure) -> Problem:
    example = example.renewed()
    target = example.user.target
    _check_state(example.user, example.module)
    graph = to_graph(export(example.user, example.module, example.inputs), target.path)
    stem = Path(target.path).stem
    return Problem(
        name=stem if target.class_name == "Model" else f"{stem}.{target.class_name}",
        target=target,
        training=example.module.training,
        output_structure=structure,
        graph=graph,
        work=count_work(graph),
    )


def _reduce(example: Example, problem: Problem, limit: int) -> Problem | None:
    def measure(shapes: Shapes) -> int | None:
        try:
            returned = example.at(shapes).forward()
        except CaptureFailed:
            return None
        return sum(_count(shape) for shape in shapes) + sum(t.numel() for t in _tensors(returned))

    def twin(shapes: Shapes) -> Problem:
        return _problem(example.at(shapes), problem.output_structure)

    def accepts(shapes: Shapes) -> bool:
        try:
            return operations(twin(shapes).graph) == operations(problem.graph)
        except CaptureFailed:
            return False

    found = shrink(example.shapes, limit=limit, measure=measure, accepts=accepts)
    if found is None:
        return None
    before = zip(problem.graph.inputs, example.shapes, found, strict=True)
    return twin(found).model_copy(
        update={"reduced_from": {name: old for name, old, new in before if old != new}}
    )


def _like(value: object, shapes: object) -> object:
    if not isinstance(value, torch.Tensor):
        return value
    assert hasattr(shapes, "__next__")
    spec = resized(spec_of(value), next(shapes))
    return torch.empty_strided(spec.shape, spec.strides, dtype=value.dtype)


def _structure(returned: object, path: str) -> Structure:
    """Check that forward returned tensors and say how they came."""
    tensors = _tensors(returned)
    count = len(returned) if isinstance(returned, list | tuple) else 1
    if len(tensors) != count or count == 0:
        raise CaptureFailed(
            f"{path}: forward returned {_shape_of(returned)}; it must return a tensor, or a flat tuple or list of"
            " tensors"
        )
    for position, tensor in enumerate(tensors):
        check_tensor(tensor, f"{path}: output {position} of forward")
    if isinstance(returned, torch.Tensor):
        return "tensor"
    return "list" if isinstance(returned, list) else "tuple"


def _tensors(returned: object) -> Sequence[torch.Tensor]:
    values = returned if isinstance(returned, list | tuple) else (returned,)
    return [value for value in values if isinstance(value, torch.Tensor)]


def _shape_of(returned: object) -> str:
    name = type(returned).__name__
    if isinstance(returned, list | tuple):
        kinds = ["Tensor" if isinstance(value, torch.Tensor) else type(value).__name__ for value in returned]
        return f"a {name} of ({', '.join(kinds)})"
    return f"a {name}"


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
