"""Validation of Programs: a right one passes, and each kind of wrong one gets a message its author can act on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.records import (
    Buffer,
    DType,
    KernelStep,
    LibraryStep,
    Program,
    ScalarArgument,
    SpecialArgument,
    Tunable,
)
from tests.problems import KERNEL, scaled_relu_problem, scaled_relu_program, scaled_relu_step
from tools.gpus import gpu_named
from tools.program import validate

H200 = gpu_named("h200")
PROBLEM = scaled_relu_problem()


def complaints(program: Program) -> dict[str, str]:
    """Rule -> message of what is wrong."""
    return {d.rule: d.message for d in validate(program, PROBLEM, H200)[1]}


def with_step(**changes: object) -> Program:
    return scaled_relu_program(steps=(scaled_relu_step(**changes),))


def test_a_right_program_is_bound_without_complaint() -> None:
    plan, found = validate(scaled_relu_program(), PROBLEM, H200)
    assert found == ()
    assert plan is not None
    assert plan.steps[0].grid == (11, 1, 1)  # type: ignore[union-attr]
    assert plan.defines == {"BLOCK": "128", "ROWS": "33", "COLS": "40"}


def test_an_unknown_buffer_is_named_beside_the_known_ones() -> None:
    found = complaints(with_step(args=("x", "wieght", "y")))
    assert "no tensor 'wieght'" in found["unknown_buffer"]
    assert "weight" in found["unknown_buffer"]


def test_the_argument_count_is_held_against_the_kernels_signature() -> None:
    assert (
        "takes 3 arguments (x, weight, y) and is given 2"
        in complaints(with_step(args=("x", "y")))["argument_count"]
    )


@pytest.mark.parametrize("grid", ["0", "2147483648", "-1"])
def test_a_grid_out_of_range_is_refused(grid: str) -> None:
    assert "grid.x" in complaints(with_step(grid=(grid, "1", "1")))["grid_range"]


def test_a_grid_is_limited_in_its_second_dimension_too() -> None:
    assert "65535" in complaints(with_step(grid=("1", "65536", "1")))["grid_range"]


@pytest.mark.parametrize("block", [("1025", "1", "1"), ("32", "33", "1"), ("1", "1", "65"), ("0", "1", "1")])
def test_a_block_out_of_range_is_refused(block: tuple[str, str, str]) -> None:
    assert "block_range" in complaints(with_step(block=block))


def test_shared_memory_over_the_gpus_limit_is_refused() -> None:
    assert "232,448" in complaints(with_step(shared_bytes="300 * 1024"))["shared_memory"]


def test_a_dtype_mismatch_names_both_types() -> None:
    halves = KERNEL.replace("float* y", "__half* y")
    assert complaints(scaled_relu_program(halves))["dtype_mismatch"].endswith(
        "points to f16 and tensor 'y' holds f32"
    )


def test_a_kernel_that_is_never_launched_is_refused() -> None:
    extra = KERNEL + '\nextern "C" __global__ void fig_leaf(float* y) { y[0] = 1.0f; }\n'
    assert "'fig_leaf' is never launched" in complaints(scaled_relu_program(extra))["unused_kernel"]


def test_an_unknown_kernel_is_named_beside_the_known_ones() -> None:
    found = complaints(with_step(entry="other"))
    assert "no kernel 'other'" in found["unknown_kernel"]


def test_a_kernel_may_not_write_an_input() -> None:
    writable = KERNEL.replace("const float* x", "float* x")
    assert "no kernel may write" in complaints(scaled_relu_program(writable))["input_written"]


def test_a_library_call_may_not_write_an_input() -> None:
    steps = (LibraryStep(op="aten.relu.default", args=("x",), outputs=("x",)), scaled_relu_step())
    assert "input_written" in complaints(scaled_relu_program(steps=steps))


@pytest.mark.parametrize(
    "op",
    [
        "aten.relu_.default",
        "aten.rand.default",
        "aten.nosuch.default",
        "os.system",
        "aten.empty.memory_format",
    ],
)
def test_only_allowed_operations_may_be_called(op: str) -> None:
    steps = (LibraryStep(op=op, args=("x",), outputs=("y",)),)
    assert "may not be called" in complaints(scaled_relu_program("", steps=steps))["library_op"]


def test_a_buffer_may_not_be_read_before_it_is_written() -> None:
    buffers = (
        Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F32),
        Buffer(name="t", shape=("COLS",), dtype=DType.F32),
    )
    found = complaints(scaled_relu_program(buffers=buffers, steps=(scaled_relu_step(args=("x", "t", "y")),)))
    assert "reads 't' before any step writes it" in found["read_before_write"]


def test_prepare_may_not_read_inputs() -> None:
    found = complaints(scaled_relu_program(prepare=(scaled_relu_step(),)))
    assert "prepare may read state only" in found["prepare_reads_input"]


def test_outputs_must_have_the_modules_shape_and_dtype() -> None:
    shape = (Buffer(name="y", shape=("COLS", "ROWS"), dtype=DType.F32),)
    assert "[40, 33]" in complaints(scaled_relu_program(buffers=shape))["output_shape"]
    steps = (LibraryStep(op="aten.relu.default", args=("x",), outputs=("y",)),)
    halves = (Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F16),)
    assert "f16" in complaints(scaled_relu_program("", buffers=halves, steps=steps))["output_dtype"]


def test_an_output_that_no_step_writes_is_refused() -> None:
    buffers = (
        Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F32),
        Buffer(name="z", shape=("ROWS", "COLS"), dtype=DType.F32),
    )
    assert "output_unwritten" in complaints(scaled_relu_program(buffers=buffers, outputs=("z",)))


def test_the_number_of_outputs_must_be_the_modules() -> None:
    assert "output_count" in complaints(scaled_relu_program(outputs=("y", "y")))


def test_a_view_may_not_be_given_to_a_kernel() -> None:
    buffers = (
        Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F32),
        Buffer(name="t", shape=("COLS",), dtype=DType.F32, layout="any"),
    )
    steps = (
        LibraryStep(op="aten.detach.default", args=("weight",), outputs=("t",)),
        scaled_relu_step(args=("x", "t", "y")),
    )
    assert "may be a view" in complaints(scaled_relu_program(buffers=buffers, steps=steps))["layout"]


def test_a_dim_may_not_take_an_inputs_name_or_a_word_of_cuda() -> None:
    assert "name_clash" in complaints(scaled_relu_program(dims={"x": "1", "ROWS": "33", "COLS": "40"}))
    assert "reserved_name" in complaints(
        scaled_relu_program(tunables=(Tunable(name="float", value=1, choices=(1,)),))
    )


def test_scalars_must_fit_their_parameter() -> None:
    source = KERNEL.replace("float* y)", "float* y, int n)")
    right = ScalarArgument(ctype="int", value="ROWS * COLS")
    assert (
        complaints(scaled_relu_program(source, steps=(scaled_relu_step(args=("x", "weight", "y", right)),)))
        == {}
    )
    wrong = ScalarArgument(ctype="float", value=1.0)
    found = complaints(
        scaled_relu_program(source, steps=(scaled_relu_step(args=("x", "weight", "y", wrong)),))
    )
    assert "'int' and is given a 'float'" in found["argument_kind"]
    large = ScalarArgument(ctype="int", value="4294967296")
    found = complaints(
        scaled_relu_program(source, steps=(scaled_relu_step(args=("x", "weight", "y", large)),))
    )
    assert "cannot hold" in found["argument_range"]


def test_an_expression_error_names_its_place() -> None:
    assert complaints(with_step(grid=("ROWS / 2", "1", "1")))["expression"].startswith("steps[0].grid:")


def test_buffers_larger_than_the_gpu_are_refused() -> None:
    buffers = (
        Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F32),
        Buffer(name="t", shape=("1024", "1024", "1024", "100"), dtype=DType.F32, zero=True),
    )
    assert "429.5 GB" in complaints(scaled_relu_program(buffers=buffers))["memory"]


def test_a_plan_without_steps_is_refused() -> None:
    assert "step_count" in complaints(scaled_relu_program("", steps=()))


_step_fields = st.fixed_dictionaries(
    {},
    optional={
        "entry": st.sampled_from(["scaled_relu", "k", "x"]),
        "grid": st.tuples(*[st.sampled_from(["1", "N", "-1", "x.shape[9]", "BLOCK"])] * 3),
        "block": st.tuples(*[st.sampled_from(["1", "2000", "y.shape[0]", "BLOCK"])] * 3),
        "args": st.lists(st.sampled_from(["x", "y", "weight", "q"]), max_size=4).map(tuple),
        "shared_bytes": st.sampled_from(["0", "-4", "1 //0", "BLOCK * 4"]),
    },
)


@given(_step_fields)
def test_validation_of_any_step_ends_in_complaints_never_in_an_exception(fields: dict[str, object]) -> None:
    step = KernelStep.model_validate({**scaled_relu_step().model_dump(), **fields})
    plan, found = validate(scaled_relu_program(steps=(step,)), PROBLEM, H200)
    assert plan is not None or found


@pytest.mark.parametrize(("kind", "taken"), [(DType.I64, True), (DType.BOOL, False)])
def test_indexing_with_numbers_is_taken_and_with_a_mask_refused(kind: DType, taken: bool) -> None:
    rows = LibraryStep(
        op="aten.zeros.default",
        args=((SpecialArgument(expression="ROWS"),),),
        kwargs={"dtype": SpecialArgument(dtype=kind)},
        outputs=("rows",),
    )
    index = LibraryStep(op="aten.index.Tensor", args=("x", ("rows",)), outputs=("y",))
    program = scaled_relu_program(
        "// No kernels.",
        buffers=(
            Buffer(name="rows", shape=("ROWS",), dtype=kind),
            Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F32),
        ),
        steps=(rows, index),
    )
    found = complaints(program)
    assert found == {} if taken else "an index is a mask" in found["library_op"]
