"""A node's arguments by the names of its operation's schema, defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import cast

import torch
from torch._ops import OpOverload

from memory.records import Argument, Node, SpecialArgument
from tools.arrays import dtype_of


def base_name(op: str) -> str:
    """`softmax` of `aten.softmax.int`."""
    parts = op.split(".")
    return parts[1] if len(parts) > 1 else op


@lru_cache(maxsize=4096)
def _parameters(op: str) -> tuple[tuple[str, Argument], ...]:
    """(name, default) of every parameter of `aten.name.overload`; () for an operation this PyTorch lacks."""
    parts = op.split(".")
    packet = getattr(torch.ops.aten, parts[1], None) if len(parts) == 3 and parts[0] == "aten" else None
    found = getattr(packet, parts[2], None) if packet is not None else None
    if not isinstance(found, OpOverload):
        return ()
    return tuple((a.name, _plain(a.default_value)) for a in found._schema.arguments)


def parameter_names(op: str) -> tuple[str, ...]:
    """Names of the operation's parameters in the schema's order; () where it is unknown."""
    return tuple(name for name, _ in _parameters(op))


def _plain(value: object) -> Argument:
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, str):
        return SpecialArgument(text=value)
    if isinstance(value, torch.dtype):
        known = dtype_of(value)
        return SpecialArgument(dtype=known) if known is not None else None
    if value is None or isinstance(value, bool | int | float):
        return value
    return None


class Arguments:
    """Typed access to one node's arguments; a missing or differently typed one gives the stated default."""

    def __init__(self, node: Node) -> None:
        parameters = _parameters(node.op)
        values: dict[str, Argument] = dict(parameters)
        values |= dict(zip((name for name, _ in parameters), node.args, strict=False))
        values |= node.kwargs
        self._values: Mapping[str, Argument] = values

    def get(self, name: str) -> Argument:
        """The raw argument, None where absent."""
        return self._values.get(name)

    def tensor(self, name: str) -> str | None:
        """A tensor's name, None where absent."""
        value = self.get(name)
        return value if isinstance(value, str) else None

    def flag(self, name: str) -> bool:
        """A boolean, False where absent."""
        return self.get(name) is True

    def integer(self, name: str, default: int = 0) -> int:
        """An integer."""
        value = self.get(name)
        return value if isinstance(value, int) else default

    def real(self, name: str, default: float) -> float:
        """A number, infinities and NaN included."""
        value = self.get(name)
        if isinstance(value, SpecialArgument) and value.float is not None:
            return float(value.float)
        return float(value) if isinstance(value, int | float) else default

    def text(self, name: str, default: str) -> str:
        """A string argument such as gelu's `approximate`."""
        value = self.get(name)
        return value.text if isinstance(value, SpecialArgument) and value.text is not None else default

    def integers(self, name: str) -> tuple[int, ...]:
        """A list of integers; a single integer counts as a list of one; () where absent."""
        value = self.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return (value,)
        if isinstance(value, tuple) and all(isinstance(v, int) for v in value):
            return cast("tuple[int, ...]", value)
        return ()

    def spread(self, name: str, rank: int, default: int) -> tuple[int, ...]:
        """`rank` integers: a list of one is repeated, an absent or empty one is `default`."""
        found = self.integers(name) or (default,)
        return found * rank if len(found) == 1 else found


def normal_dims(dims: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Non-negative dimension indices."""
    return tuple(d + rank if d < 0 else d for d in dims)
