"""The device port's contract: what every adapter must do with a bound plan.

A module that imports these tests provides the `device` fixture; the same suite runs on the simulator and on a GPU.
"""

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
    TensorSpec,
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
    untouched = [results(device, scaled_relu_program(silent))["y"].tobytes() for _ in range(3)]
    # One byte throughout; a device may change it from run to run, and zero may be among them.
    assert all(len(set(content)) == 1 for content in untouched)
    assert any(content[0] for content in untouched)
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


def test_more_static_shared_memory_than_cuda_allows_does_not_compile(device: Device) -> None:
    source = KERNEL.replace("int i =", "__shared__ float s[15000]; s[threadIdx.x] = x[threadIdx.x]; int i =")
    outcome = run(device, scaled_relu_program(source.replace("y[i] =", "y[i] = s[(i * 7) % 128] +")))
    assert isinstance(outcome, Fault)
    assert outcome.status is Status.COMPILE_ERROR
    assert "60,000 bytes of static shared memory" in outcome.diagnostics[0].message
    assert "extern __shared__" in outcome.diagnostics[0].message


def test_static_and_dynamic_shared_memory_may_exceed_48_kib_together(device: Device) -> None:
    uses = (
        "__shared__ float held[5000]; extern __shared__ float s[];"
        " held[threadIdx.x * 39] = 0.0f; s[threadIdx.x * 80] = held[threadIdx.x * 39]; int i ="
    )
    source = KERNEL.replace("int i =", uses).replace("y[i] =", "y[i] = s[threadIdx.x * 80] +")
    step = scaled_relu_step(shared_bytes="128 * 80 * 4")
    assert np.array_equal(results(device, scaled_relu_program(source, steps=(step,)))["y"], expected())


def test_a_time_says_where_it_goes(device: Device) -> None:
    measured = device.measure(bind(scaled_relu_program(), scaled_relu_problem(4096, 4096)))
    assert isinstance(measured, Measured)
    assert 0 < measured.low_us <= measured.median_us <= measured.high_us
    assert [s.name for s in measured.steps] == ["scaled_relu"]
    step = measured.steps[0]
    assert step.authored
    assert step.dram_bytes == pytest.approx(2 * 4096 * 4096 * 4, rel=0.1)
    assert step.occupancy is not None
    assert step.registers is not None
    assert (measured.rounds is None) == (device.time_source == "modelled")


def test_a_write_past_the_end_is_found_when_sanitized(device: Device) -> None:
    program = scaled_relu_program(KERNEL.replace("y[i] =", "y[i + (i == ROWS * COLS - 1)] ="))
    outcome = run(device, program, sanitize=True)
    assert isinstance(outcome, Fault)
    assert outcome.status is Status.SANITIZER_ERROR
    assert "y" in outcome.diagnostics[0].message


def test_a_write_to_an_input_is_found(device: Device) -> None:
    source = KERNEL.replace("const float* x", "float* x").replace("y[i] =", "y[i] = x[i] =")
    outcome = run(device, scaled_relu_program(source))
    assert isinstance(outcome, Fault)
    assert outcome.status in (Status.INCORRECT, Status.RUNTIME_ERROR, Status.SANITIZER_ERROR)
    assert "x" in outcome.diagnostics[0].message


def test_a_library_view_keeps_its_content_when_a_kernel_writes_its_source_again(device: Device) -> None:
    buffers = (
        Buffer(name="t", shape=("ROWS", "COLS"), dtype=DType.F32),
        Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F32),
    )
    steps = (
        scaled_relu_step(args=("x", "weight", "t")),
        LibraryStep(op="aten.alias.default", args=("t",), outputs=("y",)),
        scaled_relu_step(args=("y", "weight", "t")),
    )
    for sanitize in (False, True):
        found = results(device, scaled_relu_program(buffers=buffers, steps=steps), sanitize=sanitize)
        assert np.array_equal(found["y"], expected())


def test_a_kernel_that_writes_a_library_view_of_an_input_leaves_the_input_alone(device: Device) -> None:
    buffers = (Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F32),)
    source = KERNEL.replace("const float* x, ", "").replace("x[i]", "y[i]")
    steps = (
        LibraryStep(op="aten.alias.default", args=("x",), outputs=("y",)),
        scaled_relu_step(args=("weight", "y")),
    )
    assert np.array_equal(
        results(device, scaled_relu_program(source, buffers=buffers, steps=steps))["y"], expected()
    )


def test_half_precision_travels_as_bit_patterns(device: Device) -> None:
    buffers = (Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.BF16),)
    steps = (
        LibraryStep(
            op="aten._to_copy.default",
            args=("x",),
            kwargs={"dtype": SpecialArgument(dtype=DType.BF16)},
            outputs=("y",),
        ),
    )
    y = results(device, scaled_relu_program("", buffers=buffers, steps=steps))["y"]
    assert y.dtype == np.uint16
    wide = (y.astype(np.uint32) << np.uint32(16)).view(np.float32)
    assert np.allclose(wide, given()["x"], rtol=2**-8)


def test_an_input_keeps_its_strides(device: Device) -> None:
    turned = TensorSpec(shape=(33, 40), dtype=DType.F32, strides=(1, 33))
    values = {**PROBLEM.graph.values, "x": turned}
    graph = PROBLEM.graph.model_copy(update={"values": values})
    source = KERNEL.replace("x[i]", "x[(i % COLS) * ROWS + i / COLS]")
    loaded = device.load(bind(scaled_relu_program(source), PROBLEM.model_copy(update={"graph": graph})))
    assert not isinstance(loaded, Fault)
    outcome = loaded.execute(given(), sanitize=True)
    assert isinstance(outcome, Executed), outcome
    assert np.array_equal(outcome.results["y"], expected())
