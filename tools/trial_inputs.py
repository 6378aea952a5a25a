"""Forward's arguments for one trial, inside the reference's child process.

Here: the author's inputs (narrowed for a smaller twin) and drawn ones, with the shapes and strides of the graph.
Not here: the distributions (tools.inputs).
Invariant: floating inputs follow the distribution; integers stay within the author's own range, so that indices
and class labels stay valid; plain numbers are the author's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode

from memory.errors import BadInput
from memory.records import Problem, TensorSpec
from tools.arrays import laid_out, spec_of, tensor_from, torch_dtype
from tools.inputs import Distribution, draw_floats, draw_integers
from tools.target import TensorInput, parse_inputs
from tools.user_module import UserModule, seed_everything

_INPUT_SEED = 1_000_003
"""Added to a trial's seed, so that inputs do not repeat the numbers that the weights were drawn from."""


class TrialInputs:
    """Draws forward's arguments for one problem."""

    def __init__(self, user: UserModule, problem: Problem) -> None:
        self._user = user
        self._problem = problem
        self._specs = [problem.graph.values[name] for name in problem.graph.inputs]
        self._template: list[object] = []
        self._bounds: dict[int, tuple[int, int]] = {}
        self._find_template()

    def draw(self, seed: int, distribution: Distribution) -> list[object]:
        """Arguments of forward. The same seed and distribution give the same values."""
        if distribution is Distribution.AUTHOR and self._user.target.inputs is None:
            return self._author(seed)
        if distribution is Distribution.AUTHOR:
            distribution = Distribution.NORMAL
        generator = np.random.default_rng([seed, _INPUT_SEED])
        tensors: list[object] = []
        for position, spec in enumerate(self._specs):
            shape = tuple(
                1 if stride == 0 else size for size, stride in zip(spec.shape, spec.strides, strict=True)
            )
            if spec.dtype.is_floating:
                array = draw_floats(shape, spec.dtype, distribution, generator)
                drawn = torch.from_numpy(array).to(torch_dtype(spec.dtype))
            else:
                bounds = self._bounds.get(position, (0, 1))
                drawn = tensor_from(draw_integers(shape, spec.dtype, bounds, generator), spec.dtype)
            tensors.append(laid_out(drawn, spec))
        return self._placed(tensors)

    def _find_template(self) -> None:
        """Learn the plain numbers among the arguments, and the range of integer inputs."""
        if self._user.target.inputs is not None:
            items = parse_inputs(self._user.target.inputs)
            tensors = [item for item in items if isinstance(item, TensorInput)]
            self._bounds = {i: (0, item.high - 1) for i, item in enumerate(tensors)}
            self._template = [torch.empty(0) if isinstance(item, TensorInput) else item for item in items]
        elif all(spec.dtype.is_floating for spec in self._specs):
            self._template = self._shapes_only()
        else:
            self._template = self._author(0)
            found = [value for value in self._template if isinstance(value, torch.Tensor)]
            self._bounds = {
                i: (int(value.min()), int(value.max()))
                for i, value in enumerate(found)
                if value.numel() and not value.is_floating_point() and value.dtype is not torch.bool
            }
            self._template = [torch.empty(0) if isinstance(v, torch.Tensor) else v for v in self._template]

    def _shapes_only(self) -> list[object]:
        """The author's arguments without their memory, where the file's code allows it."""
        try:
            with FakeTensorMode():
                return self._user.inputs()
        except BadInput:
            return self._author(0)

    def _author(self, seed: int) -> list[object]:
        seed_everything(seed + _INPUT_SEED)
        sizes = _changed_sizes(self._problem)
        values = self._user.inputs() if not sizes else self._smaller(sizes)
        if values is None:
            seed_everything(seed + _INPUT_SEED)
            values = self._user.inputs()
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        self._template = values
        if len(tensors) != len(self._specs):
            raise BadInput(
                f"{self._user.target.path}: get_inputs() returned other inputs than when it was captured"
            )
        return self._placed(
            _fitted(t, spec, self._user) for t, spec in zip(tensors, self._specs, strict=True)
        )

    def _smaller(self, sizes: Mapping[int, int]) -> list[object] | None:
        """The author's inputs made small from the start; None where his code does not allow it."""
        try:
            with _SmallerFactories(sizes):
                values = self._user.inputs()
        except BadInput:
            return None
        shapes = [tuple(value.shape) for value in values if isinstance(value, torch.Tensor)]
        return values if shapes == [spec.shape for spec in self._specs] else None

    def _placed(self, tensors: Iterable[object]) -> list[object]:
        rest = iter(tensors)
        return [next(rest) if isinstance(value, torch.Tensor) else value for value in self._template]


class _SmallerFactories(TorchFunctionMode):
    """Makes random and constant tensors with smaller sizes, so that a 6 GB input is never held."""

    _MAKERS = frozenset(
        (torch.rand, torch.randn, torch.zeros, torch.ones, torch.empty, torch.randint, torch.full)
    )

    def __init__(self, sizes: Mapping[int, int]) -> None:
        super().__init__()
        self._sizes = sizes

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Iterable[type],
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        named = dict(kwargs or {})
        if func in self._MAKERS:
            bounded = func in (torch.randint, torch.full)
            args = tuple(self._resize(value, lists_only=bounded) for value in args)
            if "size" in named:
                named["size"] = self._resize(named["size"], lists_only=False)
        return func(*args, **named)

    def _resize(self, value: object, *, lists_only: bool) -> object:
        if isinstance(value, list | tuple):
            return tuple(self._resize(item, lists_only=False) for item in value)
        if isinstance(value, int) and not isinstance(value, bool) and not lists_only:
            return self._sizes.get(value, value)
        return value


def _changed_sizes(problem: Problem) -> dict[int, int]:
    """Original size -> smaller size, for a twin."""
    return {
        old: new
        for name, shape in (problem.reduced_from or {}).items()
        for old, new in zip(shape, problem.graph.values[name].shape, strict=True)
        if old != new
    }


def _fitted(tensor: torch.Tensor, spec: TensorSpec, user: UserModule) -> torch.Tensor:
    """An author's tensor cut to the spec's shape and laid out with its strides."""
    large_enough = tensor.dim() == len(spec.shape) and all(
        own >= size for own, size in zip(tensor.shape, spec.shape, strict=True)
    )
    if not large_enough or tensor.dtype is not torch_dtype(spec.dtype):
        raise BadInput(
            f"{user.target.path}: get_inputs() returned {tuple(tensor.shape)} {tensor.dtype} where the captured input"
            f" is {spec.shape} {spec.dtype.value}; shapes must not change from call to call"
        )
    cut = tensor[tuple(slice(0, size) for size in spec.shape)].detach()
    return cut if spec_of(cut) == spec else laid_out(cut, spec)
