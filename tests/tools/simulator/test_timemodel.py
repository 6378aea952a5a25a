"""Modelled times against durations that a prototype's notes give for kernels of these kinds on an H200 (cold cache).

The model was adjusted while looking at these very cases: the test guards against drift, it does not validate.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tests.tools.simulator import kernels
from tests.tools.simulator.test_metrics import measure
from tools.gpus import GPUS
from tools.simulator.compiler import HostCompiler
from tools.simulator.launch import KernelArg, Launch, ScalarArg
from tools.simulator.timemodel import KernelResources, ModelledTime, blocks_per_sm, modelled_kernel_us

H200 = GPUS["h200"]
N = 1 << 24
ROWS = [16 << 20, 16 << 20]


@dataclass(frozen=True)
class Case:
    """One kernel and its measured time in µs."""

    name: str
    source: str
    buffer_bytes: list[int]
    scalars: list[KernelArg]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    measured_us: float
    limiters: frozenset[str]
    defines: dict[str, str] = field(default_factory=dict)
    static_shared_bytes: int = 0


def ints(*values: int) -> list[KernelArg]:
    return [ScalarArg("int", v) for v in values]


MEMORY = frozenset(["dram", "l2"])
CASES = {
    c.name: c
    for c in [
        Case("vadd", kernels.VADD, [4 * N] * 3, ints(N), (N // 256, 1, 1), (256, 1, 1), 59.2, MEMORY),
        Case("vadd4", kernels.VADD4, [4 * N] * 3, ints(N // 4), (N // 1024, 1, 1), (256, 1, 1), 44.5, MEMORY),
        Case("transpose", kernels.TRANSPOSE_NAIVE, [64 << 20] * 2, ints(4096), (128, 128, 1), (32, 8, 1), 268, MEMORY),
        Case(
            "transpose tile 32", kernels.TRANSPOSE_TILED, [64 << 20] * 2, ints(4096), (128, 128, 1), (32, 8, 1), 85,
            frozenset(["load_store"]), {"PAD": "0"}, 4096,
        ),
        Case(
            "transpose tile 33", kernels.TRANSPOSE_TILED, [64 << 20] * 2, ints(4096), (128, 128, 1), (32, 8, 1), 34,
            MEMORY, {"PAD": "1"}, 4224,
        ),
        Case(
            "softmax", kernels.SOFTMAX, ROWS, ints(1024), (4096, 1, 1), (256, 1, 1), 15.6,
            frozenset(["issue", *MEMORY]),
        ),
        Case(
            "layernorm", kernels.LAYERNORM, [16 << 20, 4096, 4096, 16 << 20], [*ints(1024), ScalarArg("float", 1e-5)],
            (4096, 1, 1), (256, 1, 1), 11, frozenset(["issue", "load_store", *MEMORY]),
        ),
        Case(
            "matmul tile 16", kernels.MATMUL_TILED, [1 << 20] * 3, ints(512), (32, 32, 1), (16, 16, 1), 42.6,
            frozenset(["load_store"]), {"TILE": "16"}, 2048,
        ),
    ]
}  # fmt: skip


def model(compiler: HostCompiler, case: Case) -> ModelledTime:
    metrics = measure(
        compiler, case.source, case.buffer_bytes, case.scalars, case.grid, case.block, case.defines
    )
    launch = Launch("k", case.grid, case.block, 0, ())
    return modelled_kernel_us(metrics, KernelResources(32, case.static_shared_bytes), launch, H200)


@pytest.mark.parametrize("name", CASES)
def test_the_modelled_time_is_near_the_measured_one(compiler: HostCompiler, name: str) -> None:
    case = CASES[name]
    time = model(compiler, case)
    assert max(time.us / case.measured_us, case.measured_us / time.us) < 1.3, time
    assert time.limiter in case.limiters, time
    assert time.low_us < time.us < time.high_us


def test_coalesced_loads_are_faster_than_strided_ones(compiler: HostCompiler) -> None:
    n = 1 << 20
    times = []
    for stride in (1, 2, 4, 8):
        case = Case(
            "strided", kernels.STRIDED, [4 * n * stride, 4 * n], ints(n), (n // 256, 1, 1), (256, 1, 1), 0, MEMORY,
            {"STRIDE": str(stride)},
        )  # fmt: skip
        times.append(model(compiler, case).us)
    assert times == sorted(times)
    assert times[-1] > 1.5 * times[0]


def test_fewer_resident_blocks_are_slower(compiler: HostCompiler) -> None:
    case = CASES["vadd"]
    metrics = measure(compiler, case.source, case.buffer_bytes, case.scalars, case.grid, case.block)
    launch = Launch("k", case.grid, case.block, 0, ())
    light = modelled_kernel_us(metrics, KernelResources(32), launch, H200)
    heavy = modelled_kernel_us(metrics, KernelResources(168), launch, H200)
    assert heavy.us > 1.3 * light.us
    assert heavy.limiter == "latency"


@pytest.mark.parametrize(
    ("registers", "shared", "threads", "expected"),
    [
        (32, 0, 256, 8),
        (64, 0, 256, 4),
        (32, 100 << 10, 256, 2),
        (32, 0, 1024, 2),
        (16, 0, 32, 32),
        (255, 0, 256, 1),
    ],
)
def test_residency_follows_the_scarcest_resource(
    registers: int, shared: int, threads: int, expected: int
) -> None:
    launch = Launch("k", (1, 1, 1), (threads, 1, 1), shared, ())
    assert blocks_per_sm(KernelResources(registers), launch, H200) == expected


def test_a_block_that_does_not_fit_is_refused() -> None:
    launch = Launch("k", (1, 1, 1), (1024, 1, 1), 0, ())
    with pytest.raises(ValueError, match="does not fit h200"):
        blocks_per_sm(KernelResources(128), launch, H200)
