"""Library steps: allowed ATen operations called with a plan's data. The same code serves every device."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from memory.records import Argument, SpecialArgument, TensorSpec
from tools.arrays import dtype_of, torch_dtype
from tools.binding import BoundLibrary, BoundPlan
from tools.library_ops import resolve

_MEMORY_FORMATS = {
    "contiguous_format": torch.contiguous_format,
    "channels_last": torch.channels_last,
    "channels_last_3d": torch.channels_last_3d,
    "preserve_format": torch.preserve_format,
}


class LibraryFault(Exception):
    """The operation refused its arguments or returned something other than the plan declares."""


def call(
    step: BoundLibrary, lookup: Callable[[str], torch.Tensor], device: torch.device, plan: BoundPlan
) -> dict[str, torch.Tensor]:
    """Run one library step and return its named results.

    Raises: LibraryFault with the operation's own message, or where a result's shape or dtype differs from the
    buffer that the plan declares for it.
    """
    operation = resolve(step.op)
    arguments = [argument_value(a, lookup) for a in step.args]
    keywords = {name: argument_value(a, lookup) for name, a in step.kwargs.items()}
    if any(argument.name == "device" for argument in operation._schema.arguments):
        keywords["device"] = device
    try:
        with torch.no_grad():
            returned = operation(*arguments, **keywords)
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, OverflowError) as error:
        raise LibraryFault(f"{step.op}: {str(error).splitlines()[0]}") from error
    results = list(returned) if isinstance(returned, tuple | list) else [returned]
    return _named(step, results, plan)


def argument_value(argument: Argument, lookup: Callable[[str], object]) -> object:
    """What an operation is given for a plan's or graph's argument; `lookup` says what stands for a tensor's name."""
    if isinstance(argument, str):
        return lookup(argument)
    if isinstance(argument, tuple):
        return [argument_value(item, lookup) for item in argument]
    if isinstance(argument, SpecialArgument):
        return _special(argument)
    return argument


def _special(argument: SpecialArgument) -> object:
    if argument.float is not None:
        return float(argument.float)
    if argument.dtype is not None:
        return torch_dtype(argument.dtype)
    if argument.memory_format is not None:
        return _MEMORY_FORMATS[argument.memory_format]
    return argument.text


def _named(step: BoundLibrary, results: Sequence[object], plan: BoundPlan) -> dict[str, torch.Tensor]:
    if len(step.outputs) > len(results):
        raise LibraryFault(f"{step.op} returns {len(results)} results and the plan names {len(step.outputs)}")
    named: dict[str, torch.Tensor] = {}
    for name, result in zip(step.outputs, results, strict=False):
        if name is None:
            continue
        if not isinstance(result, torch.Tensor):
            raise LibraryFault(f"{step.op} returns no tensor for {name!r}")
        if not _is_plain(result):
            raise LibraryFault(f"{step.op} returns a tensor of a kind that kernels cannot read for {name!r}")
        _expect(step.op, name, result, plan.buffers[name].spec)
        named[name] = result.contiguous() if plan.buffers[name].contiguous else result
    return named


def _is_plain(tensor: torch.Tensor) -> bool:
    """True for dense memory that means what its elements say: not sparse, nested, lazily negated or all-zero."""
    lazy = tensor.is_neg() or tensor.is_conj() or torch._is_zerotensor(tensor)
    return tensor.layout is torch.strided and not (tensor.is_nested or tensor.is_mkldnn or lazy)


def _expect(op: str, name: str, tensor: torch.Tensor, spec: TensorSpec) -> None:
    if tuple(tensor.shape) != spec.shape or dtype_of(tensor.dtype) is not spec.dtype:
        raise LibraryFault(
            f"{op} returns {list(tensor.shape)} {tensor.dtype} for {name!r}, declared {list(spec.shape)} {spec.dtype}"
        )
