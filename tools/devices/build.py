"""Opens the device that a picklable description names: the one place in tools that chooses an adapter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tools.devices.port import Device
from tools.devices.simulator import SimulatorDevice
from tools.gpus import gpu_named
from tools.nvrtc import NvrtcCompiler
from tools.simulator.compiler import HostCompiler
from tools.simulator.runner import Simulator


@dataclass(frozen=True)
class DeviceSpec:
    """Which device to open."""

    kind: Literal["simulator"]
    gpu: str
    """Name in tools.gpus of the GPU that is simulated."""
    threads: int = 1
    """Processes over which the simulator spreads a kernel's blocks."""
    timeout_s: float = 30.0
    """Wall seconds one simulated run may take."""

    @property
    def name(self) -> str:
        """The opened device's name."""
        return f"{self.kind}:{self.gpu}"


@contextmanager
def open_device(spec: DeviceSpec, cache_dir: Path) -> Iterator[Device]:
    """The device, with compile caches under `cache_dir`. Raises ToolMissing where a compiler is absent."""
    with NvrtcCompiler(cache_dir / "nvrtc") as nvrtc:
        host = HostCompiler(cache_dir / "host")
        simulator = Simulator(host, workers=spec.threads, timeout_s=spec.timeout_s)
        yield SimulatorDevice(gpu_named(spec.gpu), nvrtc, host, simulator)
