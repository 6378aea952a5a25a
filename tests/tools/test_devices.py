"""The device port's contract, held against the simulator: what every adapter must do with a bound plan."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from memory.records import (
    Buffer,
    DType,
    KernelStep,
    LibraryStep,
    Program,
    ScalarArgument,
    SpecialArgument,
    Status,
)
from tests.problems import KERNEL, scaled_relu_problem, scaled_relu_program, scaled_relu_step
from tools.arrays import Array
from tools.binding import bind
from tools.devices.port import Device, Executed, Fault, Measured

PROBLEM = scaled_relu_problem()


def given(seed: int = 0) -> dict[str, NDArray[np.float32]]:
    generator = np.random.default_rng(seed)
    shapes = {name: PROBLEM.graph.values[name].shape for name in ("x", "weight")}
    return {name: generator.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def run(device: Device, program: Program, *, sanitize: bool = False) -> Executed | Fault:
    loaded = device.load(bind(program, PROBLEM))
    return loaded if isinstance(loaded, Fault) else loaded.execute(given(), sanitize=sanitize)


def results(device: Device, program: Program, *, sanitize: bool = False) -> dict[str, Array]:
    outcome = run(device, program, sanitize=sanitize)
    assert isinstance(outcome, Executed), outcome
    return dict(outcome.results)


def expected() -> NDArray[np.float32]:
    data = given()
    product: NDArray[np.float32] = np.maximum(data["x"] * data["weight"], np.float32(0))
    return product


@pytest.fixture
def device(simulated_h200: Device) -> Device:
    return simulated_h200


@pytest.mark.parametrize("sanitize", [False, True])
def test_a_kernel_computes_what_it_says(device: Device, sanitize: bool) -> None:
    assert np.array_equal(results(device, scaled_relu_program(), sanitize=sanitize)["y"], expected())


def test_kernels_and_library_calls_share_their_tensors(device: Device) -> None:
    buffers = (
        Buffer(name="t", shape=("ROWS", "COLS"), dtype=DType.F32),
        Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F32),
    )
    steps = (
        scaled_relu_step(args=("x", "weight", "t")),
        LibraryStep(op="aten.mul.Tensor", args=("t", 2.0), outputs=("y",)),
    )
    assert np.array_equal(
        results(device, scaled_relu_program(buffers=buffers, steps=steps))["y"], 2 * expected()
    )


def test_a_view_of_a_library_call_is_made_contiguous_for_a_kernel(device: Device) -> None:
    buffers = (
        Buffer(name="t", shape=("COLS", "ROWS"), dtype=DType.F32, layout="any"),
        Buffer(name="u", shape=("ROWS", "COLS"), dtype=DType.F32),
        Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F32),
    )
    steps = (
        LibraryStep(op="aten.permute.default", args=("x", (1, 0)), outputs=("t",)),
        LibraryStep(op="aten.permute.default", args=("t", (1, 0)), outputs=("u",)),
        scaled_relu_step(args=("u", "weight", "y")),
    )
    assert np.array_equal(results(device, scaled_relu_program(buffers=buffers, steps=steps))["y"], expected())


def test_prepare_steps_run_before_the_steps(device: Device) -> None:
    buffers = (
        Buffer(name="w2", shape=("COLS",), dtype=DType.F32),
        Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F32),
    )
    prepare = (LibraryStep(op="aten.mul.Tensor", args=("weight", 1.0), outputs=("w2",)),)
    program = scaled_relu_program(
        buffers=buffers, prepare=prepare, steps=(scaled_relu_step(args=("x", "w2", "y")),)
    )
    assert np.array_equal(results(device, program)["y"], expected())


def test_scalars_arrive_as_their_types(device: Device) -> None:
    source = (
        'extern "C" __global__ void fill(float* y, int i, long long l, float f, double d) {\n'
        "  int at = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (at < ROWS * COLS) y[at] = i + (float)(l >> 32) + f + (float)d;\n}\n"
    )
    args = (
        "y",
        ScalarArgument(ctype="int", value="ROWS"),
        ScalarArgument(ctype="long long", value="8589934592"),
        ScalarArgument(ctype="float", value=0.5),
        ScalarArgument(ctype="double", value=0.25),
    )
    step = KernelStep(
        entry="fill", grid=("ceil_div(ROWS * COLS, 128)", "1", "1"), block=("128", "1", "1"), args=args
    )
    assert np.all(results(device, scaled_relu_program(source, steps=(step,)))["y"] == 33 + 2 + 0.75)


def test_buffers_are_poisoned_unless_declared_zero(device: Device) -> None:
    silent = KERNEL.replace("y[i] =", "if (i < 0) y[i] =")
    untouched = results(device, scaled_relu_program(silent))["y"]
    assert np.isnan(untouched).all()
    zeroed = (Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F32, zero=True),)
    assert not results(device, scaled_relu_program(silent, buffers=zeroed))["y"].any()


def test_unwritten_booleans_are_a_fault_not_a_coin_toss(device: Device) -> None:
    source = 'extern "C" __global__ void silent(const float* x, bool* y) { if (x[0] > 1e30f) y[0] = true; }\n'
    buffers = (Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.BOOL),)
    step = KernelStep(entry="silent", grid=("1", "1", "1"), block=("1", "1", "1"), args=("x", "y"))
    outcome = run(device, scaled_relu_program(source, buffers=buffers, steps=(step,)))
    assert isinstance(outcome, Fault)
    assert outcome.status is Status.INCORRECT


def test_special_arguments_reach_the_library(device: Device) -> None:
    buffers = (Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F32),)
    steps = (
        LibraryStep(
            op="aten.full.default",
            args=(
                (SpecialArgument(expression="ROWS"), SpecialArgument(expression="COLS")),
                SpecialArgument(float="-inf"),
            ),
            kwargs={"dtype": SpecialArgument(dtype=DType.F32)},
            outputs=("y",),
        ),
    )
    y = results(device, scaled_relu_program("", buffers=buffers, steps=steps))["y"]
    assert np.isneginf(y.astype(np.float64)).all()


def test_a_library_result_of_another_shape_is_a_fault(device: Device) -> None:
    buffers = (Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F32),)
    steps = (LibraryStep(op="aten.sum.default", args=("x",), outputs=("y",)),)
    outcome = run(device, scaled_relu_program("", buffers=buffers, steps=steps))
    assert isinstance(outcome, Fault)
    assert "declared [33, 40]" in outcome.diagnostics[0].message


def test_results_own_their_memory(device: Device) -> None:
    loaded = device.load(bind(scaled_relu_program(), PROBLEM))
    assert not isinstance(loaded, Fault)
    first = loaded.execute(given(0), sanitize=False)
    second = loaded.execute(given(1), sanitize=False)
    assert isinstance(first, Executed)
    assert isinstance(second, Executed)
    assert np.array_equal(first.results["y"], expected())
    assert not np.array_equal(first.results["y"], second.results["y"])


def test_a_block_that_needs_too_many_registers_does_not_compile(device: Device) -> None:
    lines = "\n".join(f"  float v{i} = x[(threadIdx.x * {i + 1}) % 1320];" for i in range(200))
    total = " + ".join(f"v{i} * v{(i * 7) % 200}" for i in range(200))
    source = (
        'extern "C" __global__ void fat(const float* x, float* y) {\n'
        f"{lines}\n  __syncthreads();\n  y[threadIdx.x] = {total};\n}}\n"
    )
    step = KernelStep(entry="fat", grid=("1", "1", "1"), block=("1024", "1", "1"), args=("x", "y"))
    outcome = run(device, scaled_relu_program(source, steps=(step,)))
    assert isinstance(outcome, Fault)
    assert outcome.status is Status.COMPILE_ERROR
    assert outcome.diagnostics[0].rule == "block_range"


def test_a_time_says_where_it_goes(device: Device) -> None:
    measured = device.measure(bind(scaled_relu_program(), scaled_relu_problem(4096, 4096)))
    assert isinstance(measured, Measured)
    assert measured.low_us <= measured.median_us <= measured.high_us
    assert [s.name for s in measured.steps] == ["scaled_relu"]
    step = measured.steps[0]
    assert step.dram_bytes == pytest.approx(2 * 4096 * 4096 * 4, rel=0.1)
    assert step.load_sectors_per_request == pytest.approx(4.0, rel=0.1)
    assert step.occupancy is not None
    assert step.registers is not None
