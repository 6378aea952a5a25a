"""The user's module as the measure of truth: fresh weights for each trial, and the forward in float64.

Here: perturbing weights and buffers, running a module in its own precision and in double. Not here: files and
requests (tools.reference_child).
Invariants: no parameter has the same values in every trial, so that a kernel which ignores one is caught; running
variances stay positive; in the oracle nothing is rounded to fewer bits than float64, whatever the code pins.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.utils._python_dispatch import TorchDispatchMode

from memory.errors import BadInput, CaptureFailed
from tools.arrays import NARROW_FLOATS, widened
from tools.user_module import UserModule, seed_everything, user_code


class Weights:
    """Builds the module anew for each trial, on the device where it will run if its constructor allows that.

    A constructor that draws 671 M weights takes 8 s on a CPU and no time on a GPU.
    """

    def __init__(self, user: UserModule, training: bool, device: torch.device) -> None:
        self._user = user
        self._training = training
        self._device = device
        self._maker = device if device.type != "cpu" else None
        """Where constructors make their tensors; None for where the user's code puts them."""
        self._fixed: frozenset[str] | None = None

    def build(self, seed: int) -> nn.Module:
        """The module with the weights of a seed, in the problem's mode, on the device."""
        module = self._raw(seed)
        if self._fixed is None:
            self._fixed = _alike(module, self._raw(seed + 1))
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                if name in self._fixed:
                    _perturb(parameter, generator)
            for layer in module.modules():
                if (
                    isinstance(layer, _NormBase)
                    and layer.running_mean is not None
                    and layer.running_var is not None
                ):
                    shift = torch.randn(layer.running_mean.shape, generator=generator) * 0.5
                    factor = torch.rand(layer.running_var.shape, generator=generator) + 0.5
                    layer.running_mean.add_(shift.to(self._device))
                    layer.running_var.mul_(factor.to(self._device))
        return module.train(self._training) if module.training != self._training else module

    def _raw(self, seed: int) -> nn.Module:
        if self._maker is not None:
            try:
                return self._built(seed, self._maker)
            except BadInput:
                # It mixes tensors of its own with the CPU's, or takes their values out.
                self._maker = None
        return self._built(seed, None)

    def _built(self, seed: int, maker: torch.device | None) -> nn.Module:
        seed_everything(seed)
        with torch.no_grad(), maker or nullcontext():
            module = self._user.build()
        return module.to(self._device)


def _alike(first: nn.Module, second: nn.Module) -> frozenset[str]:
    """Names of floating parameters that the constructor sets alike whatever the seed (ones, zeros, tables)."""
    others = dict(second.named_parameters())
    return frozenset(
        name
        for name, value in first.named_parameters()
        if value.is_floating_point() and name in others and torch.equal(value, others[name])
    )


def to_double(module: nn.Module) -> nn.Module:
    """A float64 copy, plain tensor attributes included."""
    twin = copy.deepcopy(module).double()
    for part in twin.modules():
        for name, value in list(vars(part).items()):
            if isinstance(value, torch.Tensor) and value.dtype in NARROW_FLOATS:
                setattr(part, name, value.double())
    return twin


def run(user: UserModule, module: nn.Module, inputs: Sequence[object]) -> list[torch.Tensor]:
    """Forward without gradients; its output tensors in order. Raises: CaptureFailed, naming the user's line."""
    with user_code(user, "forward"), torch.no_grad():
        returned = module(*inputs)
    values = returned if isinstance(returned, list | tuple) else (returned,)
    return [value for value in values if isinstance(value, torch.Tensor)]


def run_double(user: UserModule, twin: nn.Module, inputs: Sequence[object]) -> list[torch.Tensor]:
    """Forward of a float64 module on inputs made float64. Raises: BadInput where its code cannot run so."""
    wide = [v.double() if isinstance(v, torch.Tensor) and v.dtype in NARROW_FLOATS else v for v in inputs]
    try:
        with _double_default(), _Widen():  # type: ignore[no-untyped-call]
            return run(user, twin, wide)
    except CaptureFailed as error:
        raise BadInput(
            f"{error}. This was the module in float64: without it there is no oracle to judge kernels by; let its"
            " dtypes follow its input's"
        ) from error


@contextmanager
def _double_default() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class _Widen(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Turns every request for a narrower float (`.float()`, `dtype=torch.float16`, autocast) into float64."""

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        named = {name: widened(value) for name, value in (kwargs or {}).items()}
        return func(*(widened(value) for value in args), **named)


def _perturb(parameter: nn.Parameter, generator: torch.Generator) -> None:
    """Move each value by up to half of itself, zeros by up to 0.5."""
    noise = torch.rand(parameter.shape, generator=generator).to(parameter) - 0.5
    parameter.copy_(torch.where(parameter == 0, noise, parameter * (1 + noise)))
