"""Which library results get memory of their own."""

from __future__ import annotations

from memory.records import Buffer, DType, LibraryStep, Program
from tests.problems import scaled_relu_problem, scaled_relu_program, scaled_relu_step
from tools.binding import bind
from tools.devices.aliasing import must_own


def owned(steps: tuple[object, ...], prepare: tuple[object, ...] = ()) -> tuple[bool, ...]:
    names = ("t", "u", "y")
    buffers = tuple(Buffer(name=n, shape=("ROWS", "COLS"), dtype=DType.F32) for n in names)
    program: Program = scaled_relu_program(buffers=buffers, steps=steps, prepare=prepare)
    return must_own(bind(program, scaled_relu_problem()))


def view(source: str, result: str) -> LibraryStep:
    return LibraryStep(op="aten.alias.default", args=(source,), outputs=(result,))


def kernel(source: str, result: str) -> object:
    return scaled_relu_step(args=(source, "weight", result))


def test_a_view_that_nobody_writes_behind_is_free() -> None:
    assert owned((view("x", "t"), kernel("t", "y"))) == (False, False)


def test_a_view_whose_source_is_written_later_is_copied() -> None:
    assert owned((kernel("x", "t"), view("t", "u"), kernel("u", "t"))) == (False, True, False)


def test_a_view_of_a_view_counts_as_one_of_its_first_source() -> None:
    steps = (kernel("x", "t"), view("t", "u"), view("u", "y"), kernel("x", "t"))
    assert owned(steps) == (False, True, True, False)


def test_a_result_that_a_kernel_writes_later_is_copied() -> None:
    assert owned((view("x", "t"), kernel("x", "t"))) == (True, False)


def test_a_prepared_view_of_state_is_copied_where_the_steps_write_it() -> None:
    prepare = (view("weight", "t"),)
    assert owned((kernel("x", "t"),), prepare=prepare) == (True, False)
