"""Floors and modelled library times: units, monotony, and the shape of the timeline."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.records import DType, TensorSpec, Work
from tools.gpus import GPUS, gpu_for_arch, gpu_named
from tools.roofline import (
    EVENT_US,
    HOST_LEAD_US,
    StepTime,
    floor_us,
    library_flops,
    library_time,
    timeline_us,
)

H200 = gpu_named("h200")


def spec(*shape: int, dtype: DType = DType.F32) -> TensorSpec:
    return TensorSpec.dense(shape, dtype)


def test_a_copy_of_eight_and_a_half_gigabytes_takes_two_milliseconds_at_least() -> None:
    assert floor_us(Work(flops=0, min_bytes=8_600_000_000), DType.F32, H200) == pytest.approx(2000)


def test_a_large_matrix_product_is_bound_by_compute() -> None:
    work = Work(flops=2 * 8192**3, min_bytes=3 * 8192**2 * 4)
    assert floor_us(work, DType.F32, H200) == pytest.approx(2 * 8192**3 / 400e6)


def test_matrix_products_count_two_operations_for_each_multiply_add() -> None:
    assert library_flops("aten.mm.default", [spec(4, 5), spec(5, 6)], [spec(4, 6)]) == 2 * 4 * 5 * 6
    addmm = library_flops("aten.addmm.default", [spec(6), spec(4, 5), spec(5, 6)], [spec(4, 6)])
    assert addmm == 2 * 4 * 5 * 6


def test_a_convolution_counts_its_taps() -> None:
    reads = [spec(2, 3, 8, 8), spec(16, 3, 3, 3)]
    assert library_flops("aten.convolution.default", reads, [spec(2, 16, 6, 6)]) == 2 * 2 * 16 * 36 * 27


def test_a_view_costs_no_device_time() -> None:
    assert library_time("aten.permute.default", [spec(4096, 4096)], [spec(4096, 4096)], H200).device_us == 0


def test_short_operations_are_bound_by_the_host() -> None:
    assert timeline_us([StepTime(1.0, 10.0)] * 100) == pytest.approx(1000 - HOST_LEAD_US + 1 + EVENT_US)


def test_long_operations_hide_the_host() -> None:
    assert timeline_us([StepTime(1000.0, 10.0)] * 3) == pytest.approx(3000 + EVENT_US)


@given(st.lists(st.tuples(st.floats(0, 1e4), st.floats(0, 100)), min_size=1, max_size=20))
def test_a_timeline_is_at_least_the_device_work_and_at_most_everything_in_turn(
    steps: list[tuple[float, float]],
) -> None:
    times = [StepTime(device, host) for device, host in steps]
    total = timeline_us(times)
    assert total >= sum(t.device_us for t in times) - 1e-6
    assert total <= EVENT_US + sum(t.device_us + t.host_us for t in times) + 1e-6


@pytest.mark.parametrize("name", GPUS)
def test_every_gpu_is_found_by_its_architecture(name: str) -> None:
    assert gpu_named(name.upper()).name == name
    assert gpu_for_arch(GPUS[name].arch).arch == GPUS[name].arch
