"""What PyTorch makes of a plan's library step: a composite operation taken apart, a view with the strides it has.

Here: running one step on tensors without data and noting what is dispatched. Not here: what that costs
(tools.roofline). A captured graph holds what eager dispatches; a plan may call `aten.softmax.int` or `aten.conv2d`
instead, and must not cost less for the name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from memory.records import Argument, TensorSpec, references
from tools.arrays import dtype_of, spec_of, torch_dtype
from tools.binding import BoundLibrary
from tools.devices.library import argument_value
from tools.library_ops import resolve
from tools.work import RECURRENT, VIEW_OPERATIONS, Call, short_name

_WHOLE = RECURRENT | {"scaled_dot_product_attention"}
"""Composite operations that a graph keeps whole too."""


@dataclass(frozen=True)
class Dispatched:
    """What a step runs, and the specs of its results."""

    calls: tuple[Call, ...]
    results: tuple[TensorSpec | None, ...]
    """By position; None where it is no tensor, or unknown."""


def dispatched(step: BoundLibrary, specs: Mapping[str, TensorSpec]) -> Dispatched:
    """The step's calls, with tensors of these specs; the step itself as one call where nothing comes of it."""
    names = tuple(dict.fromkeys(step.reads))
    if _is_composite(step.op) or short_name(step.op) in VIEW_OPERATIONS:
        key = tuple(step.kwargs.items())
        found = _trace(step.op, step.args, key, names, tuple(specs[name] for name in names))
        if found is not None:
            return found
    listed = tuple(references((*step.args, *step.kwargs.values())))
    results = tuple(None if name is None else specs[name] for name in step.outputs)
    writes = tuple(spec for spec in results if spec is not None)
    call = Call(step.op, step.args, step.kwargs, listed, tuple(specs[name] for name in listed), writes)
    return Dispatched((call,), results)


def _is_composite(op: str) -> bool:
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    return short_name(op) not in _WHOLE and bool(resolve(op).has_kernel_for_dispatch_key(composite))


@lru_cache(maxsize=4096)
def _trace(
    op: str,
    args: tuple[Argument, ...],
    kwargs: tuple[tuple[str, Argument], ...],
    names: tuple[str, ...],
    specs: tuple[TensorSpec, ...],
) -> Dispatched | None:
    """None where the operation cannot run without data: its step then counts as one call."""
    with torch.no_grad(), FakeTensorMode():
        given = {name: _empty(spec) for name, spec in zip(names, specs, strict=True)}
        try:
            with _Recorder(given) as recorder:
                returned = resolve(op)(
                    *(argument_value(a, given.__getitem__) for a in args),
                    **{name: argument_value(a, given.__getitem__) for name, a in kwargs},
                )
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
            return None
    results = returned if isinstance(returned, tuple | list) else (returned,)
    return Dispatched(tuple(recorder.calls), tuple(_spec(result) for result in results))


def _empty(spec: TensorSpec) -> torch.Tensor:
    return torch.empty_strided(spec.shape, spec.strides, dtype=torch_dtype(spec.dtype))


def _spec(value: object) -> TensorSpec | None:
    known = isinstance(value, torch.Tensor) and dtype_of(value.dtype) is not None
    return spec_of(value) if known and isinstance(value, torch.Tensor) else None


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes every operation below the composite ones."""

    def __init__(self, given: Mapping[str, torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[Call] = []
        self._names = {id(tensor): name for name, tensor in given.items()}
        self._kept: list[torch.Tensor] = []

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: Iterable[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        named = dict(kwargs or {})
        returned = func(*args, **named)
        if func.namespace != "aten":
            return returned  # a tensor without data asks for its device so
        made = returned if isinstance(returned, tuple | list) else (returned,)
        reads = [v for v in _flat((*args, *named.values())) if isinstance(v, torch.Tensor)]
        writes = [_spec(value) for value in made]
        self.calls.append(
            Call(
                op=str(func),
                args=tuple(self._argument(a) for a in args),
                kwargs={name: self._argument(a) for name, a in named.items()},
                names=tuple(self._name(tensor) for tensor in reads),
                reads=tuple(spec_of(tensor) for tensor in reads),
                writes=tuple(spec for spec in writes if spec is not None),
            )
        )
        return returned

    def _argument(self, value: object) -> Argument:
        if isinstance(value, torch.Tensor):
            return self._name(value)
        if isinstance(value, list | tuple):
            return tuple(self._argument(item) for item in value)
        return value if isinstance(value, bool | int | float) else None

    def _name(self, tensor: torch.Tensor) -> str:
        if id(tensor) not in self._names:
            self._names[id(tensor)] = f"between_{len(self._names)}"
            self._kept.append(tensor)  # so that no other tensor gets its id
        return self._names[id(tensor)]


def _flat(values: Iterable[object]) -> list[object]:
    found: list[object] = []
    for value in values:
        found += _flat(value) if isinstance(value, list | tuple) else [value]
    return found
