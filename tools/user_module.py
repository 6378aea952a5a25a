"""The user's module inside a child process: its file executed, its class built, its inputs made.

Here: running the user's code and turning what it raises into one clear message with file and line. Not here:
the process around it (tools.child), the graph (tools.graph_export).
Invariant: every call into the user's code goes through `user_code`, which names the stage to the parent first.
"""

from __future__ import annotations

import inspect
import linecache
import random
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from torch import nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
)
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from memory.errors import BadInput, CaptureFailed
from memory.records import Target
from tools.arrays import dtype_of, torch_dtype
from tools.child_loop import Progress
from tools.target import TensorInput, no_class, parse_init, parse_inputs

_MODULE_NAME = "warpsmith_target"
_CUDA_WORDS = re.compile(r"\bcuda\b|NVIDIA", re.IGNORECASE)
_MEMORY_WORDS = re.compile(r"can't allocate memory|out of memory", re.IGNORECASE)
_NO_CUDA = (
    "capture runs without a GPU, so the file must not ask for one: drop .cuda() and device='cuda' (the device is"
    " chosen later), and make new tensors inside forward with device=x.device"
)
DATA_DEPENDENT = (
    "what it computes depends on the values of a tensor (.item(), bool(), nonzero, masked_select or indexing with"
    " a mask), so it has no fixed graph; use torch.where or arithmetic with masks"
)
_DATA_ERRORS = (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode)


class DataDependent(CaptureFailed):
    """Forward has no fixed graph, so that tracing it another way would only hide the fact."""


@dataclass(frozen=True)
class UserModule:
    """A user's file, executed."""

    target: Target
    module: ModuleType
    progress: Progress

    def build(self) -> nn.Module:
        """A new instance of the class, in the mode that its constructor leaves it in."""
        cls = self._class()
        arguments, keywords = self._init_arguments()
        with user_code(self, f"{self.target.class_name}()"):
            built = cls(*arguments, **keywords)
        if not isinstance(built, nn.Module):
            raise CaptureFailed(
                f"{self.target.path}: {self.target.class_name} is not a torch.nn.Module class"
            )
        return built

    def inputs(self) -> list[object]:
        """Forward's arguments, positional: tensors, plain numbers, strings or None."""
        if self.target.inputs is not None:
            return [_example(item) for item in parse_inputs(self.target.inputs)]
        made = self._call("get_inputs")
        if isinstance(made, torch.Tensor):
            made = [made]
        if not isinstance(made, list | tuple):
            raise CaptureFailed(
                f"{self.target.path}: get_inputs() returned a {type(made).__name__}; return forward's arguments as"
                " a list"
            )
        for position, value in enumerate(made):
            self._check_input(position, value)
        return list(made)

    def input_names(self, count: int) -> list[str]:
        """Names of forward's first `count` positional arguments."""
        parameters = inspect.signature(self._class().forward).parameters.values()
        plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        names = [p.name for p in parameters if p.kind in plain][1:]
        return (names + [f"input_{i}" for i in range(len(names), count)])[:count]

    def _class(self) -> type[nn.Module]:
        found = getattr(self.module, self.target.class_name, None)
        if isinstance(found, type) and issubclass(found, nn.Module):
            return found
        if found is not None:
            raise BadInput(
                f"{self.target.path}: {self.target.class_name} is not a class derived from torch.nn.Module"
            )
        own = [
            name for name, v in vars(self.module).items() if isinstance(v, type) and issubclass(v, nn.Module)
        ]
        raise BadInput(f"{self.target.path}: {no_class(self.target.class_name, own)}")

    def _init_arguments(self) -> tuple[tuple[object, ...], dict[str, object]]:
        if self.target.init is not None:
            positional, keyword = parse_init(self.target.init)
            return tuple(positional), dict(keyword)
        if not hasattr(self.module, "get_init_inputs"):
            return (), {}
        made = self._call("get_init_inputs")
        if isinstance(made, dict):
            return (), made
        if not isinstance(made, list | tuple):
            raise CaptureFailed(
                f"{self.target.path}: get_init_inputs() returned a {type(made).__name__}; return a list of positional"
                " arguments or a dict of keyword arguments"
            )
        return tuple(made), {}

    def _call(self, name: str) -> object:
        function = getattr(self.module, name, None)
        if not callable(function):
            raise BadInput(
                f"{self.target.path}: defines no {name}(); add it, or give the inputs with --inputs 'f32[16,1024]'"
            )
        with user_code(self, f"{name}()"):
            result: object = function()
        return result

    def _check_input(self, position: int, value: object) -> None:
        place = f"{self.target.path}: input {position} of get_inputs()"
        if isinstance(value, torch.Tensor):
            check_tensor(value, place)
            _check_plain(value, place)
        elif not (value is None or isinstance(value, bool | int | float | str)):
            raise CaptureFailed(
                f"{place} is a {type(value).__name__}; forward's arguments must be tensors or plain numbers: pass a"
                " collection's tensors as separate arguments"
            )


def load(target: Target, progress: Progress) -> UserModule:
    """Execute the target's text as a module; its folder is importable.

    Raises: CaptureFailed with file and line where the file's own top level raises.
    """
    module = ModuleType(_MODULE_NAME)
    module.__file__ = target.path
    sys.modules[_MODULE_NAME] = module
    sys.path.insert(0, str(Path(target.path).parent))
    linecache.cache[target.path] = (
        len(target.source),
        None,
        target.source.splitlines(keepends=True),
        target.path,
    )
    user = UserModule(target, module, progress)
    with user_code(user, "the file's top level"):
        exec(compile(target.source, target.path, "exec"), vars(module))
    return user


def seed_everything(seed: int) -> None:
    """Seed torch, NumPy and `random`, whichever the user's file draws from."""
    torch.manual_seed(seed)
    np.random.seed(seed % (1 << 32))
    random.seed(seed)


@contextmanager
def user_code(user: UserModule, stage: str) -> Iterator[None]:
    """Run a piece of the user's code; what it raises becomes a CaptureFailed with file, line and remedy."""
    user.progress(f"running {stage} of {user.target.path}")
    try:
        yield
    except (CaptureFailed, BadInput):
        raise
    except (Exception, SystemExit) as error:
        kind = DataDependent if isinstance(error, _DATA_ERRORS) else CaptureFailed
        raise kind(describe(error, user.target.path, stage)) from error


def describe(error: BaseException, path: str, stage: str) -> str:
    """One line: file, the user's own line, what was raised during which stage, and what to do."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
    place = f"{path}:{lines[-1]}" if lines else path
    text = " ".join(str(error).split())[:500]
    if isinstance(error, _DATA_ERRORS):
        return f"{place}: {stage}: {DATA_DEPENDENT}"
    if isinstance(error, MemoryError) or _MEMORY_WORDS.search(text):
        return f"{place}: {stage} ran out of memory ({text[:200]}); give smaller inputs"
    message = f"{place}: {stage} raised {type(error).__name__}: {text}"
    if ".numpy()" in text:
        return f"{message}; forward must stay in torch operations to have a graph"
    return f"{message}; {_NO_CUDA}" if _CUDA_WORDS.search(text) else message


def check_tensor(tensor: torch.Tensor, place: str) -> None:
    """Refuse a tensor that Programs cannot hold. Raises: CaptureFailed."""
    # A nested tensor comes in two layouts, one of which says that it is dense.
    if tensor.is_nested:
        raise CaptureFailed(
            f"{place} is a nested tensor; only dense tensors are supported: pad it with .to_padded_tensor(0.0)"
        )
    if tensor.layout is not torch.strided:
        raise CaptureFailed(
            f"{place} is sparse ({tensor.layout}); only dense tensors are supported: use .to_dense()"
        )
    if tensor.is_quantized:
        name = str(tensor.dtype).removeprefix("torch.")
        raise CaptureFailed(
            f"{place} is quantized ({name}), which is not supported; pass .int_repr() and apply the scale in forward,"
            " or .dequantize()"
        )
    if dtype_of(tensor.dtype) is None:
        name = str(tensor.dtype).removeprefix("torch.")
        raise CaptureFailed(
            f"{place} has dtype {name}, which is not supported; use a real float, integer or bool"
        )
    if tensor.device.type not in ("cpu", "meta"):
        raise CaptureFailed(f"{place} is on {tensor.device}; {_NO_CUDA}")


def _check_plain(tensor: torch.Tensor, place: str) -> None:
    """Refuse an input without values, or whose class gives them another meaning. Raises: CaptureFailed."""
    kind = type(tensor)
    if kind is not torch.Tensor and not isinstance(tensor, FakeTensor | nn.Parameter):
        raise CaptureFailed(
            f"{place} is a {kind.__name__}, which is not supported; pass a plain torch.Tensor"
        )
    if tensor.device.type == "meta":
        raise CaptureFailed(f"{place} is on the meta device and has no values; make it without device='meta'")


def _example(item: TensorInput | bool | int | float | str | None) -> object:
    if not isinstance(item, TensorInput):
        return item
    dtype = torch_dtype(item.spec.dtype)
    if item.spec.dtype.is_floating:
        return torch.randn(item.spec.shape, dtype=torch.float32).to(dtype)
    return torch.randint(0, item.high, item.spec.shape).to(dtype)
