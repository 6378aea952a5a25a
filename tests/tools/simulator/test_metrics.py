"""Sectors, wavefronts and traffic of kernels whose figures Nsight Compute gave on an H200."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tools.simulator import kernels
from tools.simulator.arena import Arena
from tools.simulator.compiler import HostCompiler
from tools.simulator.launch import BufferArg, KernelArg, Launch, ScalarArg
from tools.simulator.report import KernelMetrics, RunStatus
from tools.simulator.runner import Mode, Simulator

Shape = tuple[list[int], list[KernelArg], tuple[int, int, int], tuple[int, int, int]]
"""Buffer sizes in bytes, scalars, grid, block."""


def measure(
    compiler: HostCompiler,
    source: str,
    buffer_bytes: list[int],
    scalars: list[KernelArg],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    defines: dict[str, str] | None = None,
    mode: Mode = Mode.SAMPLE,
) -> KernelMetrics:
    """Metrics of kernel k over zeroed buffers of these sizes."""
    library = compiler.compile(source, defines or {}, ["k"], instrumented=True)
    with Arena() as arena:
        names = [f"b{i}" for i in range(len(buffer_bytes))]
        for name, nbytes in zip(names, buffer_bytes, strict=True):
            arena.allocate(name, nbytes)
        launch = Launch("k", grid, block, 0, (*(BufferArg(n) for n in names), *scalars))
        report = Simulator(compiler).run(library, [launch], arena, mode=mode)
    assert report.status is RunStatus.OK, report
    return report.metrics[0]


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (2, 8), (4, 16), (8, 32), (32, 32)])
def test_strided_loads_take_the_sectors_that_hardware_counts(
    compiler: HostCompiler, stride: int, sectors: int
) -> None:
    n = 1 << 16
    metrics = measure(
        compiler, kernels.STRIDED, [4 * n * stride, 4 * n], [ScalarArg("int", n)], (n // 256, 1, 1), (256, 1, 1),
        {"STRIDE": str(stride)},
    )  # fmt: skip
    assert metrics.global_load_requests == n / 32
    assert metrics.global_load_sectors == sectors * n / 32
    assert metrics.global_store_sectors == 4 * n / 32
    assert metrics.dram_read_bytes == pytest.approx(min(stride, 8) * 4 * n)
    assert metrics.sampled_blocks == 16


def test_a_vector_load_is_one_request_of_sixteen_sectors(compiler: HostCompiler) -> None:
    n = 1 << 16
    metrics = measure(
        compiler, kernels.VADD4, [4 * n] * 3, [ScalarArg("int", n // 4)], (n // 1024, 1, 1), (256, 1, 1)
    )
    assert metrics.global_load_requests == 2 * n / 128
    assert metrics.global_load_sectors == 16 * metrics.global_load_requests
    assert metrics.dram_write_bytes == 4 * n


def test_transposes_show_scattered_stores_and_bank_conflicts(compiler: HostCompiler) -> None:
    n = 1024
    shape: Shape = ([4 * n * n] * 2, [ScalarArg("int", n)], (n // 32, n // 32, 1), (32, 8, 1))
    naive = measure(compiler, kernels.TRANSPOSE_NAIVE, *shape)
    assert naive.global_store_sectors / naive.global_store_requests == 32
    assert naive.global_load_sectors / naive.global_load_requests == 4
    unpadded = measure(compiler, kernels.TRANSPOSE_TILED, *shape, {"PAD": "0"})
    assert unpadded.global_store_sectors / unpadded.global_store_requests == 4
    assert unpadded.shared_load_wavefronts / unpadded.shared_load_requests == 32
    assert unpadded.bank_conflicts == 31 * unpadded.shared_load_requests
    padded = measure(compiler, kernels.TRANSPOSE_TILED, *shape, {"PAD": "1"})
    assert padded.shared_load_wavefronts / padded.shared_load_requests == 1
    assert padded.bank_conflicts == 0
    assert padded.dram_read_bytes == pytest.approx(4 * n * n)
    assert padded.barriers == padded.blocks


def test_fused_multiply_adds_are_counted(compiler: HostCompiler) -> None:
    n = 128
    metrics = measure(
        compiler, kernels.MATMUL_TILED, [4 * n * n] * 3, [ScalarArg("int", n)], (n // 16, n // 16, 1), (16, 16, 1),
        {"TILE": "16"},
    )  # fmt: skip
    assert metrics.fma_instructions == pytest.approx(n**3 / 32, rel=0.02)
    assert metrics.instructions > 2 * metrics.fma_instructions
    # Every operand is fetched from DRAM once: the matrices fit in L2.
    assert metrics.dram_read_bytes == pytest.approx(2 * 4 * n * n)


def test_contended_atomics_are_counted(compiler: HostCompiler) -> None:
    n = 1 << 14
    metrics = measure(
        compiler, kernels.HISTOGRAM, [4 * n, 1024], [ScalarArg("int", n)], (16, 1, 1), (256, 1, 1)
    )
    assert metrics.atomics == n
    assert metrics.atomic_conflicts == n - n / 32


def test_check_mode_gives_the_same_metrics(compiler: HostCompiler) -> None:
    n = 1 << 14
    shape: Shape = ([4 * n] * 3, [ScalarArg("int", n)], (n // 256, 1, 1), (256, 1, 1))
    sampled = measure(compiler, kernels.VADD, *shape)
    checked = measure(compiler, kernels.VADD, *shape, mode=Mode.CHECK)
    assert checked.global_load_sectors == sampled.global_load_sectors
    assert checked.dram_read_bytes == sampled.dram_read_bytes


def test_sampling_touches_a_huge_buffer_only_where_blocks_ran(compiler: HostCompiler) -> None:
    n = 3 << 28  # 3 GB a buffer
    metrics = measure(
        compiler, kernels.VADD, [4 * n] * 3, [ScalarArg("int", n)], (n // 256, 1, 1), (256, 1, 1)
    )
    assert metrics.dram_read_bytes == pytest.approx(8 * n)
    assert np.isfinite(metrics.instructions)
