"""Runs one kernel on arrays: what nearly every test of the simulator does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tools.simulator.arena import Arena
from tools.simulator.compiler import HostCompiler
from tools.simulator.launch import BufferArg, KernelArg, Launch, ScalarArg
from tools.simulator.report import SimReport
from tools.simulator.runner import Mode, Simulator

Value = int | float | NDArray[np.generic]


@dataclass
class Bench:
    """An arena with arrays in it; `out` holds what kernels left there."""

    compiler: HostCompiler
    arena: Arena
    workers: int = 1
    timeout_s: float = 10.0
    read_only: frozenset[str] = frozenset()
    arrays: dict[str, NDArray[np.generic]] = field(default_factory=dict)

    def run(
        self,
        source: str,
        values: Mapping[str, Value],
        *,
        grid: tuple[int, int, int] | int = 1,
        block: tuple[int, int, int] | int = 32,
        shared_bytes: int = 0,
        mode: Mode = Mode.PLAIN,
        entry: str = "k",
        defines: Mapping[str, str] | None = None,
        sample_blocks: int = 16,
    ) -> SimReport:
        """Compile and run kernel `entry`, passing `values` in order: arrays as buffers, ints and floats by copy."""
        library = self.compiler.compile(source, defines or {}, [entry], instrumented=mode is not Mode.PLAIN)
        args = tuple(self._argument(name, value) for name, value in values.items())
        simulator = Simulator(self.compiler, workers=self.workers, timeout_s=self.timeout_s)
        launch = Launch(entry, _triple(grid), _triple(block), shared_bytes, args)
        return simulator.run(library, [launch], self.arena, mode=mode, sample_blocks=sample_blocks)

    def _argument(self, name: str, value: Value) -> KernelArg:
        if isinstance(value, np.ndarray):
            if name not in self.arrays:
                self.arena.allocate(name, value.nbytes, writable=name not in self.read_only)
                self.arrays[name] = self.arena.view(name, value.dtype, value.shape)
            self.arrays[name][...] = value
            return BufferArg(name)
        return ScalarArg("float" if isinstance(value, float) else "int", value)

    def __getitem__(self, name: str) -> NDArray[np.generic]:
        return self.arrays[name]


def _triple(value: tuple[int, int, int] | int) -> tuple[int, int, int]:
    return (value, 1, 1) if isinstance(value, int) else value


def floats(*shape: int) -> NDArray[np.float32]:
    """Reproducible normal draws."""
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def zeros(*shape: int) -> NDArray[np.float32]:
    return np.zeros(shape, np.float32)


def lines_with(source: str, marker: str = "// BUG") -> Sequence[int]:
    """Source lines that carry a marker comment."""
    return [number for number, line in enumerate(source.splitlines(), 1) if marker in line]
