"""Occupancy against figures of NVIDIA's calculator and against its own bounds."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import BadInput
from tools.gpus import GPUS
from tools.nvrtc_records import KernelResources
from tools.occupancy import Occupancy, theoretical_occupancy

H200, A100, L40S = GPUS["h200"], GPUS["a100"], GPUS["l40s"]


def resources(registers: int, shared_bytes: int = 0) -> KernelResources:
    return KernelResources("k", registers, shared_bytes, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("registers", "static", "threads", "dynamic", "expected"),
    [
        (32, 0, 256, 0, Occupancy(8, 64, 1.0, "threads")),
        (32, 0, 32, 0, Occupancy(32, 32, 0.5, "blocks")),
        (64, 0, 256, 0, Occupancy(4, 32, 0.5, "registers")),
        # 33 registers round up to 40 per thread: 12 warps per sub-partition, 48 per SM.
        (33, 0, 256, 0, Occupancy(6, 48, 0.75, "registers")),
        (128, 0, 1024, 0, Occupancy(0, 0, 0.0, "does-not-fit")),
        (255, 0, 256, 0, Occupancy(1, 8, 0.125, "registers")),
        # 48 KiB and the driver's 1 KiB: four fit 228 KiB.
        (32, 48 * 1024, 256, 0, Occupancy(4, 32, 0.5, "shared")),
        (32, 0, 256, 227 * 1024, Occupancy(1, 8, 0.125, "shared")),
        (32, 0, 256, 227 * 1024 + 1, Occupancy(0, 0, 0.0, "does-not-fit")),
    ],
)
def test_known_figures_of_the_h200(
    registers: int, static: int, threads: int, dynamic: int, expected: Occupancy
) -> None:
    assert theoretical_occupancy(resources(registers, static), threads, dynamic, H200) == expected


def test_a_gpu_with_fewer_threads_per_sm_reaches_full_occupancy_sooner() -> None:
    assert theoretical_occupancy(resources(40), 256, 0, L40S) == Occupancy(6, 48, 1.0, "threads")
    assert theoretical_occupancy(resources(32, 40 * 1024), 128, 0, A100).blocks_per_sm == 4


@given(
    st.integers(1, 255),
    st.integers(1, 1024),
    st.integers(0, 240_000),
    st.sampled_from(sorted(GPUS)),
    st.booleans(),
)
def test_more_of_any_resource_never_raises_occupancy(
    registers: int, threads: int, shared: int, name: str, more_registers: bool
) -> None:
    gpu = GPUS[name]
    here = theoretical_occupancy(resources(registers), threads, shared, gpu)
    worse = theoretical_occupancy(
        resources(min(255, registers + 8 * more_registers)), threads, shared + 512 * (not more_registers), gpu
    )
    assert 0 <= worse.fraction <= here.fraction <= 1
    assert here.warps_per_sm * 32 <= gpu.max_threads_per_sm
    assert here.blocks_per_sm <= gpu.max_blocks_per_sm
    assert here.blocks_per_sm * threads * registers <= gpu.regs_per_sm
    assert here.blocks_per_sm * shared <= gpu.smem_per_sm_bytes


@pytest.mark.parametrize(("threads", "shared"), [(0, 0), (1025, 0), (32, -1)])
def test_an_impossible_launch_is_refused(threads: int, shared: int) -> None:
    with pytest.raises(BadInput, match=r"block|negative"):
        theoretical_occupancy(resources(32), threads, shared, H200)


def test_an_unreadable_architecture_is_refused() -> None:
    with pytest.raises(BadInput, match="sm_90"):
        theoretical_occupancy(resources(32), 32, 0, dataclasses.replace(H200, arch="hopper"))
