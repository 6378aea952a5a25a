"""Part of the text of an exported file: a plan's JSON decoded into steps that run on tensors.

Here: what a step does with its tensors, on any device. Not here: when a plan may run (tools.export_session), how a
kernel is compiled and launched (tools.export_cuda).
Invariant: everything below the imports is copied into exported files, where the imports of this project do not
exist; it needs Python and torch only, and every name it binds starts with `_warpsmith` or `_Warpsmith`. So no
`from __future__` here either: it would change the meaning of the user's own code.
"""

import base64 as _warpsmith_base64
import ctypes as _warpsmith_ctypes
import json as _warpsmith_json
import operator as _warpsmith_operator
import typing as _warpsmith_typing
import zlib as _warpsmith_zlib

import torch as _warpsmith_torch

_WarpsmithJson = _warpsmith_typing.Any
_WarpsmithValues = dict[str, _warpsmith_torch.Tensor]

_warpsmith_dtypes = {
    "f64": _warpsmith_torch.float64,
    "f32": _warpsmith_torch.float32,
    "f16": _warpsmith_torch.float16,
    "bf16": _warpsmith_torch.bfloat16,
    "i64": _warpsmith_torch.int64,
    "i32": _warpsmith_torch.int32,
    "i16": _warpsmith_torch.int16,
    "i8": _warpsmith_torch.int8,
    "u8": _warpsmith_torch.uint8,
    "bool": _warpsmith_torch.bool,
}
_warpsmith_ctypes_by_name: dict[str, _warpsmith_typing.Callable[[_WarpsmithJson], object]] = {
    "int": _warpsmith_ctypes.c_int,
    "unsigned int": _warpsmith_ctypes.c_uint,
    "long long": _warpsmith_ctypes.c_longlong,
    "unsigned long long": _warpsmith_ctypes.c_ulonglong,
    "float": _warpsmith_ctypes.c_float,
    "double": _warpsmith_ctypes.c_double,
}
_warpsmith_plain_types = (_warpsmith_torch.Tensor, _warpsmith_torch.nn.Parameter)
_WARPSMITH_ALIGNMENT = 32
"""Bytes; the widest access a thread makes. Fresh torch tensors have it, slices of them may not."""


class _WarpsmithUnusable(Exception):
    """The kernels cannot serve this call, and why; the original forward can."""


class _WarpsmithTensor:
    """The layout that one input or state tensor had when the kernels were verified."""

    def __init__(self, data: _WarpsmithJson) -> None:
        self.name: str = data["name"]
        self.shape = tuple(data["shape"])
        self.strides = tuple(data["strides"])
        self.dtype = _warpsmith_dtypes[data["dtype"]]

    def fit(self, tensor: object, device: _warpsmith_torch.device) -> _warpsmith_torch.Tensor:
        """The tensor, or a copy where only strides or alignment differ. Raises _WarpsmithUnusable otherwise."""
        if type(tensor) not in _warpsmith_plain_types:
            found = type(tensor).__name__
            raise _WarpsmithUnusable(f"{self.name} is a {found}, not a plain tensor")
        assert isinstance(tensor, _warpsmith_torch.Tensor)
        if tensor.shape != self.shape:
            raise _WarpsmithUnusable(f"{self.name} has shape {[*tensor.shape]}, not {[*self.shape]}")
        if tensor.dtype is not self.dtype:
            raise _WarpsmithUnusable(f"{self.name} is {tensor.dtype}, not {self.dtype}")
        if tensor.device != device:
            raise _WarpsmithUnusable(f"{self.name} is on {tensor.device}, not {device}")
        try:
            if tensor.data_ptr() % _WARPSMITH_ALIGNMENT == 0 and not tensor.is_neg():
                if tensor.stride() == self.strides:
                    return tensor
                if all(n < 2 or a == b for n, a, b in zip(self.shape, tensor.stride(), self.strides)):  # noqa: B905
                    return tensor
            return self._laid_out(tensor)
        except RuntimeError as error:  # sparse, or wrapped by torch.func: there is no memory to point at
            raise _WarpsmithUnusable(f"{self.name} has no memory of its own: {error}") from error

    def _laid_out(self, tensor: _warpsmith_torch.Tensor) -> _warpsmith_torch.Tensor:
        reach = 0
        for stride, size in sorted(zip(self.strides, self.shape)):  # noqa: B905
            if size > 1 and stride <= reach:
                raise _WarpsmithUnusable(
                    f"{self.name} has strides {[*tensor.stride()]}, not {[*self.strides]}"
                )
            reach += stride * (size - 1) if size > 1 else 0
        copy = _warpsmith_torch.empty_strided(
            self.shape, self.strides, dtype=self.dtype, device=tensor.device
        )
        return copy.copy_(tensor.detach())


class _WarpsmithKernelStep:
    """One launch: buffers made before it, arguments filled in, buffers given back after it."""

    def __init__(self, data: _WarpsmithJson, plan: "_WarpsmithPlan") -> None:
        self.slot = len(plan.launches)
        plan.launches.append((data["kernel"], tuple(data["grid"]), tuple(data["block"]), data["shared"]))
        self.make = [plan.allocation(name) for name in data["make"]]
        self.drop: list[str] = data["drop"]
        self.template: list[object] = []
        self.pointers: list[tuple[int, str]] = []
        for position, argument in enumerate(data["args"]):
            if isinstance(argument, str):
                self.pointers.append((position, argument))
                self.template.append(0)
            else:
                self.template.append(_warpsmith_ctypes_by_name[argument[0]](argument[1]))

    def run(self, values: _WarpsmithValues, bound: "_WarpsmithBound", stream: object) -> None:
        for name, allocate, shape, dtype in self.make:
            values[name] = allocate(shape, dtype=dtype, device=bound.device)
        arguments = self.template[:]
        for position, name in self.pointers:
            arguments[position] = values[name].data_ptr()
        config, kernel = bound.kernels[self.slot]
        bound.launch(stream, config, kernel, *arguments)
        for name in self.drop:
            del values[name]


class _WarpsmithLibraryStep:
    """One ATen operation."""

    def __init__(self, data: _WarpsmithJson, plan: "_WarpsmithPlan") -> None:
        _, name, overload = data["op"].split(".")
        self.op = data["op"]
        self.call = getattr(getattr(_warpsmith_torch.ops.aten, name), overload)
        self.takes_device = any(a.name == "device" for a in self.call._schema.arguments)
        self.args = [_warpsmith_argument(a) for a in data["args"]]
        self.kwargs = {key: _warpsmith_argument(a) for key, a in data["kwargs"].items()}
        self.outputs = [(i, plan.buffer(name)) for i, name in enumerate(data["outputs"]) if name is not None]
        self.make = [plan.allocation(name) for name in data["make"]]
        self.own: list[str] = data["own"]
        self.drop: list[str] = data["drop"]

    def run(self, values: _WarpsmithValues, bound: "_WarpsmithBound", stream: object) -> None:  # noqa: ARG002
        for name, allocate, shape, dtype in self.make:
            values[name] = allocate(shape, dtype=dtype, device=bound.device)
        args = [make(values) for make in self.args]
        kwargs = {key: make(values) for key, make in self.kwargs.items()}
        if self.takes_device:
            kwargs["device"] = bound.device
        returned = self.call(*args, **kwargs)
        results = returned if isinstance(returned, (tuple, list)) else (returned,)
        taken = {values[name].untyped_storage().data_ptr() for name in self.own}
        for position, (name, shape, dtype, contiguous) in self.outputs:
            result = results[position]
            if result.shape != shape or result.dtype is not dtype:
                raise RuntimeError(f"{self.op} returned {[*result.shape]} {result.dtype} for {name}")
            if contiguous:
                result = result.contiguous()
            if taken and result.untyped_storage().data_ptr() in taken:
                result = result.clone()
            values[name] = result
        for name in self.drop:
            del values[name]


def _warpsmith_argument(data: _WarpsmithJson) -> _warpsmith_typing.Callable[[_WarpsmithValues], object]:
    """A function from the tensors at hand to one argument of an operation."""
    if isinstance(data, str):
        return _warpsmith_operator.itemgetter(data)
    if isinstance(data, list):
        makers = [_warpsmith_argument(item) for item in data]
        return lambda values: [make(values) for make in makers]
    constant = _warpsmith_special(data) if isinstance(data, dict) else data
    return lambda _: constant


def _warpsmith_special(data: dict[str, str]) -> object:
    """An argument that JSON cannot carry."""
    kind, text = next(iter(data.items()))
    if kind == "float":
        return float(text)
    if kind == "dtype":
        return _warpsmith_dtypes[text]
    return getattr(_warpsmith_torch, text) if kind == "memory_format" else text


class _WarpsmithPlan:
    """The launch plan, decoded from its JSON text; one for the whole file."""

    def __init__(self, text: str, source: str) -> None:
        data: _WarpsmithJson = _warpsmith_json.loads(text)
        self.source = source
        self.arch: str = data["arch"]
        self.capability = tuple(data["capability"])
        self.training: bool = data["training"]
        self.atomics: bool = data["atomics"]
        self.replay: bool = data["replay"]
        self.buffers: _WarpsmithJson = data["buffers"]
        self.inputs = [_WarpsmithTensor(item) for item in data["inputs"]]
        self.arguments: list[_WarpsmithJson] | None = data["arguments"]
        self.state = [(item["target"], item["kind"], _WarpsmithTensor(item)) for item in data["state"]]
        self.constants: dict[str, str] = data["constants"]
        self.launches: list[tuple[str, tuple[int, ...], tuple[int, ...], int]] = []
        self.prepare = [self._step(item) for item in data["prepare"]]
        self.steps = [self._step(item) for item in data["steps"]]
        self.prepare_reads: list[str] = data["prepare_reads"]
        self.kept: list[str] = data["kept"]
        self.outputs: list[tuple[str, bool]] = [(name, copy) for name, copy in data["outputs"]]
        self.structure: str = data["structure"]
        self.updates: dict[str, str] = data["updates"]

    def _step(self, data: _WarpsmithJson) -> _WarpsmithKernelStep | _WarpsmithLibraryStep:
        return (_WarpsmithKernelStep if "kernel" in data else _WarpsmithLibraryStep)(data, self)

    def allocation(self, name: str) -> tuple[str, _WarpsmithJson, tuple[int, ...], _warpsmith_torch.dtype]:
        """Name, torch function, shape and dtype of a buffer that is made before a launch."""
        data = self.buffers[name]
        function = _warpsmith_torch.zeros if data["zero"] else _warpsmith_torch.empty
        return name, function, tuple(data["shape"]), _warpsmith_dtypes[data["dtype"]]

    def buffer(self, name: str) -> tuple[str, tuple[int, ...], _warpsmith_torch.dtype, bool]:
        """Name, shape, dtype and contiguity of a buffer that an operation returns."""
        data = self.buffers[name]
        return name, tuple(data["shape"]), _warpsmith_dtypes[data["dtype"]], data["contiguous"]

    def constant(self, name: str, device: _warpsmith_torch.device) -> _warpsmith_torch.Tensor:
        """A tensor literal of the original forward, on a device."""
        spec = next(tensor for _, _, tensor in self.state if tensor.name == name)
        raw = bytearray(_warpsmith_zlib.decompress(_warpsmith_base64.b64decode(self.constants[name])))
        made = _warpsmith_torch.frombuffer if raw else _warpsmith_torch.tensor
        flat = made(raw, dtype=spec.dtype)
        return spec.fit(flat.reshape(spec.shape).to(device), device)


class _WarpsmithBound:
    """A plan on one device: `launch(stream, config, kernel, *arguments)` and, per launch, (config, kernel)."""

    def __init__(
        self,
        device: _warpsmith_torch.device,
        launch: _warpsmith_typing.Callable[..., object],
        kernels: list[tuple[object, object]],
        owner: object = None,
    ) -> None:
        self.device = device
        self.launch = launch
        self.kernels = kernels
        self.owner = owner  # what must stay loaded while they run
        self.constants: _WarpsmithValues = {}
