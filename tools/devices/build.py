"""Opens the device that a picklable description names: the one place in tools that chooses an adapter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tools.devices.cuda import CudaDevice
from tools.devices.cuda_driver import describe_gpu
from tools.devices.port import Device
from tools.devices.simulator import SimulatorDevice
from tools.gpus import GpuSpec, gpu_named
from tools.nvrtc import NvrtcCompiler
from tools.simulator.compiler import HostCompiler
from tools.simulator.runner import Simulator


@dataclass(frozen=True)
class DeviceSpec:
    """Which device to open."""

    kind: Literal["simulator", "cuda"]
    gpu: str
    """Name in tools.gpus of the GPU that is simulated; on `cuda` the device's own name (see `cuda_spec`)."""
    threads: int = 1
    """Processes over which the simulator spreads a kernel's blocks."""
    timeout_s: float = 30.0
    """Wall seconds one simulated run may take."""
    index: int = 0
    """Which of the machine's GPUs, on `cuda`."""
    tf32: bool | None = None
    """Whether library calls and eager PyTorch may round to TF32, on `cuda`; equal for both. None: as PyTorch does."""

    @property
    def name(self) -> str:
        """The opened device's name."""
        return f"{self.kind}:{self.gpu}"


def nvrtc_cache(cache_dir: Path) -> Path:
    """Where cubins are kept, for everyone who compiles under `cache_dir`."""
    return cache_dir / "nvrtc"


def gpu_of(spec: DeviceSpec) -> GpuSpec:
    """The GPU that a device is or stands for, without opening it. Raises ToolMissing or BadInput without it."""
    return describe_gpu(spec.index)[1] if spec.kind == "cuda" else gpu_named(spec.gpu)


def cuda_spec(index: int = 0, *, tf32: bool | None = None) -> DeviceSpec:
    """The spec of a GPU of this machine, by its own name. Makes no context. Raises ToolMissing without one."""
    name, _ = describe_gpu(index)
    return DeviceSpec("cuda", name, index=index, tf32=tf32)


@contextmanager
def open_device(spec: DeviceSpec, cache_dir: Path) -> Iterator[Device]:
    """The device, with compile caches under `cache_dir`. Raises ToolMissing where a compiler is absent."""
    with NvrtcCompiler(nvrtc_cache(cache_dir)) as nvrtc:
        if spec.kind == "cuda":
            yield CudaDevice(nvrtc, spec.index, tf32=spec.tf32)
            return
        host = HostCompiler(cache_dir / "host")
        simulator = Simulator(host, workers=spec.threads, timeout_s=spec.timeout_s)
        yield SimulatorDevice(gpu_named(spec.gpu), nvrtc, host, simulator)
