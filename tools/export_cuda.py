"""Part of the text of an exported file: kernels compiled, loaded and launched through cuda.core.

Here: the seam between a plan and a device, and its CUDA side. Not here: what a plan's steps do (tools.export_steps).
Invariant: below the imports as in tools.export_steps; cuda-python is imported on first use on a GPU and not before;
a device on which anything fails once is given up with one warning, never tried again at every call.
"""

import importlib.util as _warpsmith_importlib_util
import os as _warpsmith_os
import pathlib as _warpsmith_pathlib
import threading as _warpsmith_threading
import typing as _warpsmith_typing
import warnings as _warpsmith_warnings

import torch as _warpsmith_torch

from tools.export_steps import _WarpsmithBound, _WarpsmithPlan, _WarpsmithUnusable, _WarpsmithValues


class _WarpsmithLauncher:
    """Where plans run. A subclass for another device answers `why_not`, `build` and `stream`."""

    def __init__(self) -> None:
        self._bound: dict[object, _WarpsmithBound | str] = {}
        self._lock = _warpsmith_threading.RLock()
        self.replaying = _warpsmith_threading.RLock()

    def why_not(self, device: _warpsmith_torch.device, plan: _WarpsmithPlan) -> str | None:
        """Why the plan may not run on the device; None where it may."""
        raise NotImplementedError

    def build(self, device: _warpsmith_torch.device, plan: _WarpsmithPlan) -> _WarpsmithBound:
        """Compile the plan's kernels for the device. May raise anything."""
        raise NotImplementedError

    def stream(self, device: _warpsmith_torch.device) -> tuple[object, object]:
        """A key that names the current stream, and what `launch` takes for it."""
        raise NotImplementedError

    def capturing(self) -> bool:
        """True while a CUDA graph is being captured."""
        return False

    def context(
        self,
        device: _warpsmith_torch.device,  # noqa: ARG002
    ) -> _warpsmith_typing.ContextManager[object] | None:
        """What makes the device current; None where it is."""
        return None

    def capture(
        self,
        device: _warpsmith_torch.device,  # noqa: ARG002
        forward: _warpsmith_typing.Callable[[], _WarpsmithValues],  # noqa: ARG002
    ) -> _warpsmith_typing.Any:
        """(replay, what it writes): forward, run once and captured; None where there are no graphs."""
        return None

    def record(self) -> _warpsmith_typing.Any:
        """A mark in the current stream behind which prepared tensors are complete."""
        return None

    def wait(self, mark: _warpsmith_typing.Any, tensors: list[_warpsmith_torch.Tensor]) -> None:
        """Let the current stream wait for a mark of another stream before it uses the tensors."""

    def bound(self, device: _warpsmith_torch.device, plan: _WarpsmithPlan) -> _WarpsmithBound:
        """The plan ready to run on the device. Raises _WarpsmithUnusable where it cannot be."""
        found = self._bound.get(device)
        if found is None:
            found = self._first(device, plan)
        if isinstance(found, str):
            raise _WarpsmithUnusable(found)
        return found

    def _first(self, device: _warpsmith_torch.device, plan: _WarpsmithPlan) -> "_WarpsmithBound | str":
        with self._lock:
            if device in self._bound:
                return self._bound[device]
            reason = self.why_not(device, plan)
            if reason is not None:
                self._bound[device] = reason
                return reason
            if self.capturing():
                raise _WarpsmithUnusable("a CUDA graph is being captured before the kernels ran once")
            try:
                self._bound[device] = self.build(device, plan)
            except Exception as error:  # noqa: BLE001 - whatever is missing or refused, the original forward serves
                self.give_up(device, f"the kernels cannot be built for {device}: {error}")
            return self._bound[device]

    def give_up(self, device: _warpsmith_torch.device, reason: str) -> None:
        """Use the original forward on this device from now on, and say so once."""
        with self._lock:
            known = isinstance(self._bound.get(device), str)
            self._bound[device] = reason
        if not known:
            message = f"falling back to the original PyTorch module: {reason}"
            _warpsmith_warnings.warn(message, RuntimeWarning, stacklevel=2)


class _WarpsmithStream:
    """torch's current stream in the form that cuda.core takes."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


class _WarpsmithCudaLauncher(_WarpsmithLauncher):
    """Compiles with NVRTC for the architecture that was verified; launches on torch's current stream."""

    def __init__(self) -> None:
        _WarpsmithLauncher.__init__(self)
        self._streams: dict[tuple[int, int], object] = {}

    def why_not(self, device: _warpsmith_torch.device, plan: _WarpsmithPlan) -> str | None:
        if device.type != "cuda":
            return f"the tensors are on {device}, which is no CUDA device"
        capability = _warpsmith_torch.cuda.get_device_capability(device)
        if capability != plan.capability:
            found = "{}.{}".format(*capability)
            return f"{device} has compute capability {found} and the kernels were made for {plan.arch}"
        return None

    def build(self, device: _warpsmith_torch.device, plan: _WarpsmithPlan) -> _WarpsmithBound:
        if not plan.launches:
            return _WarpsmithBound(device, _warpsmith_no_launch, [])
        from cuda.core import Device, LaunchConfig, launch

        with _warpsmith_torch.cuda.device(device):
            Device(device.index).set_current()
            code = _warpsmith_compile(plan)
            kernels: dict[str, _warpsmith_typing.Any] = {}
            for entry, _, _, _ in plan.launches:
                if entry not in kernels:
                    kernels[entry] = code.get_kernel(entry)
            for entry, kernel in kernels.items():
                wanted = max(shared for name, _, _, shared in plan.launches if name == entry)
                if wanted > kernel.attributes[device.index].max_dynamic_shared_size_bytes:
                    _warpsmith_allow_shared(kernel, wanted, device)
        ready: list[tuple[object, object]] = [
            (LaunchConfig(grid=grid, block=block, shmem_size=shared), kernels[entry])
            for entry, grid, block, shared in plan.launches
        ]
        return _WarpsmithBound(device, launch, ready, owner=code)

    def stream(self, device: _warpsmith_torch.device) -> tuple[object, object]:
        handle = _warpsmith_torch.cuda.current_stream(device).cuda_stream
        key = (device.index, handle)
        found = self._streams.get(key)
        if found is None:
            from cuda.core import Device

            owner = Device(device.index)
            owner.set_current()
            found = self._streams[key] = owner.create_stream(_WarpsmithStream(handle))
        return key, found

    def capturing(self) -> bool:
        return _warpsmith_torch.cuda.is_current_stream_capturing()

    def context(self, device: _warpsmith_torch.device) -> _warpsmith_typing.ContextManager[object] | None:
        if _warpsmith_torch.cuda.current_device() == device.index:
            return None
        return _warpsmith_torch.cuda.device(device)

    def capture(
        self,
        device: _warpsmith_torch.device,
        forward: _warpsmith_typing.Callable[[], _WarpsmithValues],
    ) -> _warpsmith_typing.Any:
        here = _warpsmith_torch.cuda.current_stream(device)
        side = _warpsmith_torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        side.wait_stream(here)
        with _warpsmith_torch.cuda.stream(side):
            forward()  # libraries make handles and workspaces at their first call, which a capture may not
        here.wait_stream(side)
        graph = _warpsmith_torch.cuda.CUDAGraph()
        with _warpsmith_torch.cuda.graph(graph):
            made = forward()
        return graph.replay, made

    def record(self) -> _warpsmith_typing.Any:
        event: _warpsmith_typing.Any = _warpsmith_torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record()
        return event

    def wait(self, mark: _warpsmith_typing.Any, tensors: list[_warpsmith_torch.Tensor]) -> None:
        if self.capturing():  # torch synchronizes before a capture, and an outside event would break it
            return
        stream = _warpsmith_torch.cuda.current_stream()
        stream.wait_event(mark)
        for tensor in tensors:
            tensor.record_stream(stream)


def _warpsmith_no_launch(*_: object) -> None:
    raise AssertionError("a plan without kernels launched one")


def _warpsmith_allow_shared(
    kernel: _warpsmith_typing.Any, wanted_bytes: int, device: _warpsmith_torch.device
) -> None:
    """Let a kernel use more dynamic shared memory than the default 48 KiB; cuda.core can only read that limit."""
    from cuda.bindings import driver

    status, ordinal = driver.cuDeviceGet(device.index)
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    if int(status) == 0:
        (status,) = driver.cuKernelSetAttribute(attribute, wanted_bytes, kernel.handle, ordinal)
    if int(status) != 0:
        raise RuntimeError(f"{wanted_bytes} bytes of dynamic shared memory were refused: {status}")


def _warpsmith_compile(plan: _WarpsmithPlan) -> _warpsmith_typing.Any:
    """The kernels as a cubin, compiled as they were when they were verified; needs no GPU."""
    from cuda.core import Program, ProgramOptions

    options = ProgramOptions(
        name="kernel.cu",
        arch=plan.arch,
        std="c++17",
        fma=True,
        include_path=_warpsmith_include_dirs() or None,
    )
    return Program(plan.source, "c++", options).compile("cubin")


def _warpsmith_include_dirs() -> list[str]:
    """Folders of CUDA's headers of NVRTC's major version: NVIDIA's Python packages, else a toolkit's."""
    from cuda.bindings import nvrtc

    _, major, _ = nvrtc.nvrtcVersion()
    folders: list[str] = []
    spec = _warpsmith_importlib_util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or []) if spec else []:
        folders += [f"{root}/cu{major}/include", f"{root}/cuda_runtime/include"]
    homes = [_warpsmith_os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    homes += [f"/usr/local/cuda-{major}", "/usr/local/cuda"]
    folders += [f"{home}/include" for home in homes if home]
    for folder in folders:
        if _warpsmith_cuda_major(_warpsmith_pathlib.Path(folder)) == major:
            places = [folder, f"{folder}/cccl", folder.replace("cuda_runtime", "cuda_cccl")]
            return [p for p in dict.fromkeys(places) if _warpsmith_pathlib.Path(p).is_dir()]
    return []


def _warpsmith_cuda_major(folder: _warpsmith_pathlib.Path) -> int | None:
    """The CUDA version of a complete header folder; None for any other."""
    needed = ("cuda_fp16.h", "crt/host_defines.h", "cuda_runtime_api.h")
    if not all((folder / name).is_file() for name in needed):
        return None
    for line in (folder / needed[-1]).read_text(encoding="utf-8", errors="replace").splitlines():
        words = line.split()
        if words[:2] == ["#define", "CUDART_VERSION"]:
            return int(words[2]) // 1000
    return None
