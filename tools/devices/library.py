"""Library steps: allowed ATen operations called with a plan's data. The same code serves every device."""

from __future__ import annotations

from collections.abc import Callable

import torch

from memory.records import Argument, SpecialArgument
from tools.arrays import torch_dtype
from tools.binding import BoundLibrary, BoundPlan, BoundTensor
from tools.library_ops import resolve

_MEMORY_FORMATS = {
    "contiguous_format": torch.contiguous_format,
    "channels_last": torch.channels_last,
    "channels_last_3d": torch.channels_last_3d,
    "preserve_format": torch.preserve_format,
}


class LibraryFault(Exception):
    """The operation refused its arguments or returned something other than the plan declares."""


Lookup = Callable[[str], torch.Tensor]


class LibraryCall:
    """One library step with everything but its tensors settled, so that a call costs the host little more than the
    operation itself."""

    def __init__(self, step: BoundLibrary, device: torch.device, plan: BoundPlan) -> None:
        self._op = step.op
        self._operation = resolve(step.op)
        self._args = [_maker(a) for a in step.args]
        self._kwargs = {name: _maker(a) for name, a in step.kwargs.items()}
        if any(argument.name == "device" for argument in self._operation._schema.arguments):
            self._kwargs["device"] = lambda _: device
        self._outputs = [
            _Output(position, name, plan.buffers[name])
            for position, name in enumerate(step.outputs)
            if name is not None
        ]
        self._count = len(step.outputs)
        self._plain = False

    def run(self, lookup: Lookup) -> dict[str, torch.Tensor]:
        """Call it, in the caller's grad mode, and return its named results.

        Raises: LibraryFault with the operation's own message, or where a result's shape or dtype differs from the
        buffer that the plan declares for it.
        """
        try:
            returned = self._operation(
                *[make(lookup) for make in self._args],
                **{name: make(lookup) for name, make in self._kwargs.items()},
            )
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, OverflowError) as error:
            raise LibraryFault(f"{self._op}: {str(error).splitlines()[0]}") from error
        results = returned if isinstance(returned, tuple | list) else (returned,)
        if len(results) < self._count:
            raise LibraryFault(f"{self._op} returns {len(results)} results and the plan names {self._count}")
        named = {output.name: self._taken(output, results[output.position]) for output in self._outputs}
        self._plain = True
        return named

    def _taken(self, output: _Output, result: object) -> torch.Tensor:
        if not isinstance(result, torch.Tensor):
            raise LibraryFault(f"{self._op} returns no tensor for {output.name!r}")
        # What kind of tensor an operation returns does not change from call to call.
        if not self._plain and not _is_plain(result):
            raise LibraryFault(
                f"{self._op} returns a tensor of a kind that kernels cannot read for {output.name!r}"
            )
        if result.shape != output.shape or result.dtype is not output.dtype:
            raise LibraryFault(
                f"{self._op} returns {list(result.shape)} {result.dtype} for {output.name!r}, declared "
                f"{list(output.shape)} {output.dtype}"
            )
        return result.contiguous() if output.contiguous else result


class _Output:
    """A result that the plan names, as torch knows it."""

    def __init__(self, position: int, name: str, buffer: BoundTensor) -> None:
        self.position = position
        self.name = name
        self.shape = torch.Size(buffer.spec.shape)
        self.dtype = torch_dtype(buffer.spec.dtype)
        self.contiguous = buffer.contiguous


def call(
    step: BoundLibrary, lookup: Lookup, device: torch.device, plan: BoundPlan
) -> dict[str, torch.Tensor]:
    """Run one library step without gradients. Raises: LibraryFault."""
    with torch.no_grad():
        return LibraryCall(step, device, plan).run(lookup)


def _maker(argument: Argument) -> Callable[[Lookup], object]:
    """A function from the tensors at hand to one argument."""
    if isinstance(argument, str):
        return lambda lookup: lookup(argument)
    if isinstance(argument, tuple):
        makers = [_maker(item) for item in argument]
        return lambda lookup: [make(lookup) for make in makers]
    value = argument_value(argument, _no_tensor)
    return lambda _: value


def _no_tensor(name: str) -> object:
    raise LookupError(f"{name!r} is no constant")


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


def _is_plain(tensor: torch.Tensor) -> bool:
    """True for dense memory that means what its elements say: not sparse, nested, lazily negated or all-zero."""
    lazy = tensor.is_neg() or tensor.is_conj() or torch._is_zerotensor(tensor)
    return tensor.layout is torch.strided and not (tensor.is_nested or tensor.is_mkldnn or lazy)
