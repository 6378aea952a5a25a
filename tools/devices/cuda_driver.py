"""The CUDA driver as one GPU's owner needs it: description, kernels loaded from cubins, launches on torch's stream.

Here: every call into cuda.core and cuda.bindings; every return code is checked. Not here: tensors or plans.
Invariant: `describe_gpu` creates no context, so that a coordinating process may call it; everything else needs one.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from memory.errors import ToolMissing
from memory.records import ScalarType
from tools.gpus import GPUS, GpuSpec

_KNOWN_NAMES = (
    ("H200", "h200"),
    ("H100", "h100"),
    ("A100", "a100"),
    ("L40S", "l40s"),
    ("RTX 4090", "rtx4090"),
    ("B200", "b200"),
)
_FIRST_ARCH_SPECIFIC = 9
"""From this major capability on, `sm_90a` and its like offer more than `sm_90`."""
_SCALARS: dict[ScalarType, type[np.generic]] = {
    "int": np.int32,
    "unsigned int": np.uint32,
    "long long": np.int64,
    "unsigned long long": np.uint64,
    "float": np.float32,
    "double": np.float64,
}
_DEFAULT_SHARED_BYTES = 48 * 1024
"""Shared memory, static and dynamic together, that a block gets without asking."""


class DriverError(Exception):
    """A driver call failed; the context may or may not still be usable."""


@dataclass(frozen=True)
class LoadedKernel:
    """A kernel in device memory. `handle` is cuda.core's object; `owner` keeps its cubin loaded."""

    entry: str
    handle: Any
    owner: LoadedCubin


class LoadedCubin:
    """Lives as long as one of its kernels."""


@dataclass(frozen=True)
class SharedBytes:
    """Shared memory a block needs."""

    static: int
    """Declared in the kernel."""
    dynamic: int
    """The most that any launch asks for."""


def describe_gpu(index: int = 0) -> tuple[str, GpuSpec]:
    """The GPU's own name and its spec: of tools.gpus where known, else from the driver's attributes.

    Raises: ToolMissing without a driver or without that GPU. Makes no context.
    """
    driver = _driver()
    ordinal = _checked(driver.cuDeviceGet(index))
    name = _checked(driver.cuDeviceGetName(128, ordinal)).split(b"\0")[0].decode(errors="replace").strip()
    memory_bytes = int(_checked(driver.cuDeviceTotalMem(ordinal)))
    read = functools.partial(_attribute, ordinal)
    major, minor = read("COMPUTE_CAPABILITY_MAJOR"), read("COMPUTE_CAPABILITY_MINOR")
    arch = f"sm_{major}{minor}"
    for part, key in _KNOWN_NAMES:
        if part in name and GPUS[key].arch.rstrip("a") == arch:
            return name, replace(GPUS[key], memory_bytes=memory_bytes, sms=read("MULTIPROCESSOR_COUNT"))
    suffix = "a" if major >= _FIRST_ARCH_SPECIFIC else ""
    return name, _spec_from_attributes(name, arch + suffix, memory_bytes, ordinal)


def why_no_gpu() -> str:
    """Why torch can use no GPU although there is a driver, and what to do. Raises: ToolMissing without a driver."""
    return mismatch(torch.__version__, torch.version.cuda, int(_checked(_driver().cuDriverGetVersion())))


def mismatch(torch_version: str, built_for: str | None, driver: int) -> str:
    """What keeps a torch built for a CUDA version from a driver; `driver`: 1000 x major + 10 x minor."""
    if built_for is None:
        return f"torch {torch_version} is built without CUDA: install a CUDA build of it"
    if driver // 1000 < int(built_for.split(".")[0]):
        return (
            f"the NVIDIA driver is too old: it runs CUDA {driver // 1000}.{driver % 1000 // 10}, and torch "
            f"{torch_version} was built for {built_for}; update the driver, or install a torch built for its CUDA"
        )
    return f"torch {torch_version} sees no such CUDA device: look at CUDA_VISIBLE_DEVICES and nvidia-smi"


def set_up_context(index: int) -> None:
    """Make the GPU current for torch and cuda.core, and take the persisting-L2 carve-out away.

    Raises: ToolMissing where torch sees no such GPU; DriverError where the driver refuses.
    """
    if not torch.cuda.is_available() or index >= torch.cuda.device_count():
        raise ToolMissing(f"{why_no_gpu()}; or use the simulator")
    from cuda.core import Device

    torch.cuda.set_device(index)
    torch.cuda.synchronize()
    Device(index).set_current()
    _no_persisting_l2()


class CubinLoader:
    """Loads cubins onto one GPU, and unloads those whose kernels are all gone: cuda.core 1.2 never does, and the driver
    keeps some 100 KB of host memory for each.

    Invariant: unloading happens where the next cubin is loaded, when nothing runs or is being captured, and never in
    whichever place or thread the last kernel happened to be let go.
    """

    def __init__(self, index: int, driver: Any = None) -> None:
        """driver: cuda.bindings' module or one with its calls. Raises: ToolMissing without an NVIDIA driver."""
        self._index = index
        self._driver = driver or _driver()
        self._gone: list[Any] = []

    def load(self, cubin: bytes, shared: Mapping[str, SharedBytes]) -> dict[str, LoadedKernel]:
        """The cubin's kernels by entry name; `shared`: what each needs.

        Raises: DriverError where the driver refuses the cubin, an entry or that much shared memory.
        """
        from cuda.core import Kernel

        self._unload_gone()
        library = self._done(self._driver.cuLibraryLoadData(cubin, [], [], 0, [], [], 0), "loading the cubin")
        owner = LoadedCubin()
        # At the end of the process the driver takes everything back by itself.
        weakref.finalize(owner, self._gone.append, library).atexit = False
        loaded: dict[str, LoadedKernel] = {}
        for entry, wanted in shared.items():
            found = self._done(self._driver.cuLibraryGetKernel(library, entry.encode()), f"finding {entry}")
            loaded[entry] = LoadedKernel(entry, Kernel.from_handle(int(found)), owner)
            if wanted.static + wanted.dynamic > _DEFAULT_SHARED_BYTES:
                _allow_shared(loaded[entry].handle, wanted.dynamic, self._index)
        return loaded

    def _unload_gone(self) -> None:
        while self._gone:
            # A context that is beyond use refuses; the load that follows says so.
            self._driver.cuLibraryUnload(self._gone.pop())

    def _done(self, returned: tuple[Any, Any], doing: str) -> Any:
        status, value = returned
        if int(status) != 0:
            raise DriverError(f"{doing}: {status}")
        return value


def scalar(ctype: ScalarType, value: int | float) -> np.generic:
    """A number as the typed value that a kernel takes; integers wrap as a C conversion does."""
    if ctype in ("float", "double"):
        return _SCALARS[ctype](value)
    bits = 32 if ctype in ("int", "unsigned int") else 64
    wrapped = int(value) % (1 << bits)
    unsigned = np.uint32(wrapped) if bits == 32 else np.uint64(wrapped)
    typed: np.generic = np.array([unsigned]).view(_SCALARS[ctype])[0]
    return typed


def _no_persisting_l2() -> None:
    """Without a carve-out nothing survives the flush between timed runs."""
    driver = _driver()
    limit = driver.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE
    (status,) = driver.cuCtxSetLimit(limit, 0)
    # GPUs before Ampere have no such carve-out, so there is nothing to take away.
    if status in (driver.CUresult.CUDA_SUCCESS, driver.CUresult.CUDA_ERROR_UNSUPPORTED_LIMIT):
        return
    read, size = driver.cuCtxGetLimit(limit)
    if int(read) != 0 or int(size) != 0:
        raise DriverError(f"the persisting-L2 carve-out could not be set to zero: {status}")


class Launcher:
    """Launches on torch's current stream of one GPU."""

    def __init__(self, index: int) -> None:
        from cuda.core import Device, LaunchConfig, launch

        self._index = index
        self._device = Device(index)
        self._config = LaunchConfig
        self._launch = launch
        self._streams: dict[int, Any] = {}

    def config(self, grid: tuple[int, int, int], block: tuple[int, int, int], shared_bytes: int) -> Any:
        """A launch's geometry, made once and launched often."""
        return self._config(grid=grid, block=block, shmem_size=shared_bytes)

    def stream(self) -> Any:
        """torch's current stream in cuda.core's form."""
        handle = torch.cuda.current_stream(self._index).cuda_stream
        found = self._streams.get(handle)
        if found is None:
            found = self._streams[handle] = self._device.create_stream(_TorchStream(handle))
        return found

    def launch(self, stream: Any, config: Any, kernel: LoadedKernel, arguments: Sequence[object]) -> None:
        """One launch. Raises DriverError where the driver refuses it at once."""
        with _as_driver_error(kernel.entry):
            self._launch(stream, config, kernel.handle, *arguments)


class _TorchStream:
    """torch's stream as an object of the CUDA stream protocol."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


class _as_driver_error:  # noqa: N801 - a context manager reads as a verb; a class costs less than a generator
    """Turns cuda.core's errors into DriverError."""

    def __init__(self, doing: str) -> None:
        self._doing = doing

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        # cuda.core keeps its CUDAError in a private module, so it is known by its name.
        if error is not None and (isinstance(error, RuntimeError) or type(error).__name__ == "CUDAError"):
            raise DriverError(f"{self._doing}: {str(error).splitlines()[0]}") from error


def _allow_shared(kernel: Any, wanted_bytes: int, index: int) -> None:
    driver = _driver()
    ordinal = _checked(driver.cuDeviceGet(index))
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    (status,) = driver.cuKernelSetAttribute(attribute, wanted_bytes, kernel.handle, ordinal)
    if int(status) != 0:
        raise DriverError(f"{wanted_bytes:,} bytes of dynamic shared memory were refused: {status}")


@functools.cache
def _driver() -> Any:
    """cuda.bindings' driver module, initialised. Raises ToolMissing without an NVIDIA driver."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise ToolMissing(f"the CUDA bindings cannot be imported ({error}); pip install cuda-core") from error
    try:
        (status,) = driver.cuInit(0)
    except (RuntimeError, ImportError, OSError) as error:
        raise ToolMissing(f"no NVIDIA driver: {str(error).splitlines()[0]}; or use the simulator") from error
    if int(status) != 0:
        raise ToolMissing(f"the NVIDIA driver does not start: {status}; or use the simulator")
    return driver


def _checked(returned: tuple[Any, Any]) -> Any:
    status, value = returned
    if int(status) != 0:
        raise ToolMissing(f"the NVIDIA driver has no such GPU or attribute: {status}")
    return value


def _attribute(ordinal: Any, name: str) -> int:
    driver = _driver()
    return int(
        _checked(
            driver.cuDeviceGetAttribute(
                getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}"), ordinal
            )
        )
    )


def _spec_from_attributes(name: str, arch: str, memory_bytes: int, ordinal: Any) -> GpuSpec:
    """An estimate for a GPU that tools.gpus does not know: limits are the driver's, rates are derived."""
    read = functools.partial(_attribute, ordinal)
    sms, clock_mhz = read("MULTIPROCESSOR_COUNT"), read("CLOCK_RATE") // 1000
    fp32 = sms * 128 * 2 * clock_mhz / 1e6
    # Two transfers a clock over the whole bus, of which a copy reaches about 0.9.
    dram_gbps = 2 * read("MEMORY_CLOCK_RATE") * 1e3 * read("GLOBAL_MEMORY_BUS_WIDTH") / 8 / 1e9 * 0.9
    return GpuSpec(
        name=name,
        arch=arch,
        sms=sms,
        clock_mhz=clock_mhz,
        dram_gbps=max(dram_gbps, 50.0),
        l2_bytes=max(read("L2_CACHE_SIZE"), 1 << 20),
        l2_gbps=max(dram_gbps, 50.0) * 3,
        fp32_tflops=fp32,
        fp64_tflops=fp32 / 2 if arch in ("sm_80", "sm_90a", "sm_100a") else fp32 / 64,
        tf32_tflops=fp32 * 4,
        fp16_tflops=fp32 * 8,
        smem_per_sm_bytes=read("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
        smem_per_block_bytes=read("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        regs_per_sm=read("MAX_REGISTERS_PER_MULTIPROCESSOR"),
        max_threads_per_sm=read("MAX_THREADS_PER_MULTIPROCESSOR"),
        max_blocks_per_sm=read("MAX_BLOCKS_PER_MULTIPROCESSOR"),
        memory_bytes=memory_bytes,
    )
