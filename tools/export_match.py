"""Part of the text of an exported file: are these the arguments that the kernels were made for?

Here: constructor arguments and forward's arguments against the captured ones. Not here: the tensors' own layout
(tools.export_steps), the other guards (tools.export_session).
Invariant: below the imports as in tools.export_steps; asking leaves torch's and Python's random state as it was.
"""

import ast as _warpsmith_ast
import inspect as _warpsmith_inspect
import random as _warpsmith_random
import typing as _warpsmith_typing

import torch as _warpsmith_torch

from tools.export_steps import _WarpsmithUnusable

_WarpsmithFunction = _warpsmith_typing.Callable[..., object]


def _warpsmith_same(mine: object, other: object, depth: int = 8) -> bool:
    """Equal in type and value; tensors element by element, objects by their attributes."""
    if mine is other:
        return True
    if type(mine) is not type(other) or depth == 0:
        return False
    if isinstance(mine, _warpsmith_torch.Tensor) and isinstance(other, _warpsmith_torch.Tensor):
        return mine.device == other.device and _warpsmith_torch.equal(mine, other)
    if isinstance(mine, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(mine) == len(other) and all(
            _warpsmith_same(a, b, depth - 1)
            for a, b in zip(mine, other)  # noqa: B905
        )
    if isinstance(mine, dict) and isinstance(other, dict):
        return list(mine) == list(other) and all(_warpsmith_same(mine[k], other[k], depth - 1) for k in mine)
    if isinstance(mine, float):
        return repr(mine) == repr(other)  # a NaN is the same argument, and -0.0 another than 0.0
    if isinstance(mine, (bool, int, str, bytes, complex)):
        return mine == other
    if hasattr(mine, "__dict__") and not callable(mine):
        return _warpsmith_same(vars(mine), vars(other), depth - 1)
    return (mine == other) is True


def _warpsmith_quietly(make: _warpsmith_typing.Callable[[], object]) -> object:
    """Call a function of the user's file without moving the random state."""
    state = _warpsmith_random.getstate()
    try:
        with _warpsmith_torch.random.fork_rng(devices=[]):
            return make()
    finally:
        _warpsmith_random.setstate(state)


def _warpsmith_captured_init(literal: str | None, make: _WarpsmithFunction | None) -> object:
    """The captured constructor arguments: a list is positional, a dict keyword, anything else the only one."""
    if literal is None and make is None:
        return []
    if literal is not None:
        return _warpsmith_ast.literal_eval(literal)
    assert make is not None
    return _warpsmith_quietly(make)


def _warpsmith_constructor_objection(
    base: type,
    captured: _warpsmith_typing.Callable[[], object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> str | None:
    """Why a module built with these arguments is not the one the kernels compute; None where it is."""
    try:
        made = captured()
        if isinstance(made, dict):
            wanted = _warpsmith_bind(base.__init__, (), made)  # type: ignore[misc]
        else:
            listed = made if isinstance(made, (list, tuple)) else (made,)
            wanted = _warpsmith_bind(base.__init__, tuple(listed), {})  # type: ignore[misc]
        given = _warpsmith_bind(base.__init__, args, kwargs)  # type: ignore[misc]
        if _warpsmith_same(given, wanted):
            return None
    except Exception as error:  # noqa: BLE001 - the user's functions and comparisons may raise anything
        return f"the constructor's arguments cannot be compared with the verified ones: {error}"
    return f"the module was constructed with other arguments than the verified {made!r:.200}"


def _warpsmith_bind(
    function: _WarpsmithFunction, args: tuple[object, ...], kwargs: dict[str, object]
) -> dict[str, object]:
    bound = _warpsmith_inspect.signature(function).bind(None, *args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


def _warpsmith_learn_arguments(get_inputs: _WarpsmithFunction | None, count: int) -> list[dict[str, object]]:
    """Which of forward's arguments were tensors, and the others' values, from the file's own get_inputs."""
    if get_inputs is None:
        raise _WarpsmithUnusable("the file has no get_inputs, which tells forward's captured arguments")
    try:
        with _warpsmith_torch.device("meta"):
            made = _warpsmith_quietly(get_inputs)
    except Exception:  # noqa: BLE001 - whatever the file does that shapes alone do not suffice for
        made = _warpsmith_quietly(get_inputs)
    listed = made if isinstance(made, (list, tuple)) else [made]
    learnt: list[dict[str, object]] = []
    for value in listed:
        is_tensor = isinstance(value, _warpsmith_torch.Tensor)
        learnt.append({"tensor": True} if is_tensor else {"value": value})
    if sum("tensor" in item for item in learnt) != count:
        raise _WarpsmithUnusable(f"get_inputs no longer returns the {count} tensors that were captured")
    return learnt


class _WarpsmithArguments:
    """Sorts a call's arguments into tensors, and others that must equal the captured ones."""

    def __init__(self, forward: _WarpsmithFunction, captured: list[dict[str, _warpsmith_typing.Any]]) -> None:
        self.signature = _warpsmith_inspect.signature(forward)
        self.count = len(captured)
        reference = self._complete([item.get("value") for item in captured], {})
        self.total = len(reference)
        self.places = [i for i, item in enumerate(captured) if "tensor" in item]
        self.others = [(i, value) for i, value in enumerate(reference) if i not in self.places]
        self.plain = self.places == list(range(self.total))

    def tensors(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> _warpsmith_typing.Sequence[object]:
        """The call's tensor arguments in order. Raises _WarpsmithUnusable where another argument differs."""
        if kwargs or len(args) != self.total:
            try:
                args = self._complete(args, kwargs)
            except TypeError as error:
                raise _WarpsmithUnusable(f"forward's arguments do not fit: {error}") from error
            if len(args) != self.total:
                found = len(args)
                raise _WarpsmithUnusable(f"forward was given {found} arguments, not {self.total}")
        if self.plain:
            return args
        for position, value in self.others:
            if not _warpsmith_same(args[position], value):
                raise _WarpsmithUnusable(f"argument {position} of forward is not the verified {value!r:.80}")
        return [args[place] for place in self.places]

    def _complete(
        self, args: _warpsmith_typing.Sequence[object], kwargs: dict[str, object]
    ) -> tuple[object, ...]:
        """All positional arguments, defaults filled in."""
        bound = self.signature.bind(None, *args, **kwargs)
        bound.apply_defaults()
        for name, value in bound.kwargs.items():
            parameter = self.signature.parameters.get(name)
            if parameter is None or not _warpsmith_same(value, parameter.default):
                raise _WarpsmithUnusable(f"argument {name} of forward is not the verified default")
        return bound.args[1:]
