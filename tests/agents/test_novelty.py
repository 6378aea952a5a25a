"""Fingerprints of programs: the same for another way of writing, different for anything else that runs."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings

from agents.novelty import fingerprint
from memory.records import Buffer, DType, LibraryStep, Program, Tunable
from tests.problems import KERNEL, scaled_relu_program, scaled_relu_step
from tests.strategies import programs

FULL = """
// a row for each block
template <typename T> __device__ float activate(float u) { return u < 0.0f ? 0.0f : u; }

extern "C" __global__ void scaled_relu(const float* __restrict__ x, const float* __restrict__ weight,
                                       float* __restrict__ y) {
  __shared__ float tile[BLOCK];
  const float4* wide = reinterpret_cast<const float4*>(x);
  float sum = 0.0f, top = -1.5e3f;
  #pragma unroll 4
  for (int i = threadIdx.x; i < ROWS * COLS; i += BLOCK) {
    float4 v = wide[i];
    sum += expf(v.x) * v.y - -v.z;
    tile[threadIdx.x] = sum >> 1;
  }
  __syncthreads();
  y[blockIdx.x] = activate<float>(sum + top);
}
"""
BASE = scaled_relu_program(FULL)


def edited(*changes: tuple[str, str]) -> Program:
    """FULL with words replaced."""
    source = FULL
    for before, after in changes:
        assert before in source
        source = source.replace(before, after)
    return BASE.model_copy(update={"source": source})


def word(before: str, after: str) -> Callable[[str], str]:
    return lambda text: re.sub(rf"\b{before}\b", after, text)


def renamed(program: Program, **names: str) -> Program:
    """Words replaced in the source and everywhere in the plan."""
    text = program.model_dump_json()
    for before, after in names.items():
        text = word(before, after)(text)
    return Program.model_validate_json(text)


@pytest.mark.parametrize(
    "other",
    [
        edited(("sum", "accumulated")),
        edited(("tile", "stage")),
        edited((" u;", " w;"), ("float u)", "float w)"), ("u <", "w <")),
        edited(("(int i", "(int row"), ("; i <", "; row <"), ("; i +=", "; row +="), ("[i]", "[row]")),
        edited(("activate", "positive")),
        edited(("x,", "source,"), ("(x)", "(source)")),
        edited(("// a row for each block", "/* rows\n of blocks */")),
        edited(("// a row for each block", "")),
        edited(("  ", "\t"), ("{\n", "\n{\n\n")),
        edited(("0.0f, top", "0.0f,top"), ("sum + top", "sum+top")),
        edited(("  #pragma unroll 4\n", "")),
        edited(("#pragma unroll 4", "#pragma unroll")),
        renamed(BASE, scaled_relu="fused"),
        renamed(BASE, ROWS="M", COLS="N"),
        renamed(BASE, BLOCK="THREADS"),
        BASE.with_values({"BLOCK": 64}),
        scaled_relu_program(FULL, buffers=(Buffer(name="out", shape=("ROWS", "COLS"), dtype=DType.F32),),
                            steps=(scaled_relu_step(args=("x", "weight", "out")),), outputs=("out",)),
    ],
    ids=["variable", "array", "parameter of a function", "loop variable", "function", "parameter of the kernel",
         "comment", "no comment", "layout", "blanks", "no unroll", "unroll", "kernel", "dims", "tunable",
         "value of a tunable", "buffer"],
)  # fmt: skip
def test_another_way_of_writing_is_no_news(other: Program) -> None:
    assert other != BASE
    assert fingerprint(other) == fingerprint(BASE)


@pytest.mark.parametrize(
    "other",
    [
        edited(("sum + top", "sum - top")),
        edited(("sum + top", "top + sum")),
        edited(("i += BLOCK", "i -= BLOCK")),
        edited(("- -v.z", "--v.z")),
        edited((">> 1", ">> 2")),
        edited(("-1.5e3f", "-1.5e4f")),
        edited(("0.0f, top", "0.0, top")),
        edited(("expf", "logf")),
        edited(("expf", "__expf")),
        edited(("float sum", "double sum")),
        edited(("int i", "long i")),
        edited(("v.x", "v.w")),
        edited(("threadIdx.x", "threadIdx.y")),
        edited(("blockIdx", "threadIdx")),
        edited(("  __syncthreads();\n", "")),
        edited(("__shared__ ", "")),
        edited(("const float* __restrict__ x, const float* __restrict__ weight",
                "const float* __restrict__ weight, const float* __restrict__ x")),
        edited(("sum + top", "top + top")),
        edited(("wide[i]", "wide[i + i]")),
    ],
    ids=["operator", "order of operands", "direction", "decrement", "shift", "constant", "double constant",
         "function", "intrinsic", "type", "type of an index", "member", "dimension", "index", "barrier", "memory space",
         "order of parameters", "another variable", "index expression"],
)  # fmt: skip
def test_another_computation_is_news(other: Program) -> None:
    assert fingerprint(other) != fingerprint(BASE)


TWO_STEPS = scaled_relu_program(
    buffers=(
        Buffer(name="t", shape=("ROWS", "COLS"), dtype=DType.F32),
        Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F32),
    ),
    steps=(
        LibraryStep(op="aten.mul.Tensor", args=("x", "weight"), outputs=("t",)),
        LibraryStep(op="aten.relu.default", args=("t",), outputs=("y",)),
    ),
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (BASE, scaled_relu_program(FULL, steps=(scaled_relu_step(grid=("ROWS", "1", "1")),))),
        (BASE, scaled_relu_program(FULL, steps=(scaled_relu_step(block=("64", "1", "1")),))),
        (BASE, scaled_relu_program(FULL, steps=(scaled_relu_step(shared_bytes="4 * BLOCK"),))),
        (BASE, scaled_relu_program(FULL, steps=(scaled_relu_step(args=("weight", "x", "y")),))),
        (BASE, scaled_relu_program(FULL, steps=(scaled_relu_step(), scaled_relu_step()))),
        (BASE, scaled_relu_program(FULL, tunables=(Tunable(name="BLOCK", value=128, choices=(64, 128)),))),
        (BASE, scaled_relu_program(FULL, dims={"ROWS": "x.shape[1]", "COLS": "x.shape[0]"})),
        (BASE, scaled_relu_program(FULL, replay=True)),
        (BASE, renamed(BASE, x="z")),
        (TWO_STEPS, TWO_STEPS.model_copy(update={"steps": TWO_STEPS.steps[::-1]})),
        (TWO_STEPS, renamed(TWO_STEPS, relu="gelu")),
        (TWO_STEPS, TWO_STEPS.model_copy(update={"outputs": ("t",)})),
        (TWO_STEPS, Program.model_validate_json(TWO_STEPS.model_dump_json().replace('"f32"', '"f16"'))),
    ],
    ids=["grid", "block", "shared bytes", "order of arguments", "two launches", "choices", "dims", "replay",
         "another input", "order of steps", "operation", "output", "type"],
)  # fmt: skip
def test_another_plan_is_news(one: Program, other: Program) -> None:
    assert fingerprint(one) != fingerprint(other)


def subtraction(parameters: str, body: str, arguments: tuple[str, ...] = ("a", "b", "y")) -> Program:
    source = f'extern "C" __global__ void scaled_relu({parameters}) {{ {body} }}'
    return scaled_relu_program(
        source, dims={}, steps=(scaled_relu_step(args=arguments, grid=("1", "1", "1")),)
    )


def test_the_problems_own_names_are_no_variables() -> None:
    one = subtraction("const float* a, const float* b, float* y", "y[0] = a[0] - b[0];")
    turned = subtraction("const float* b, const float* a, float* y", "y[0] = b[0] - a[0];", ("b", "a", "y"))
    assert fingerprint(one) != fingerprint(turned), "a - b is not b - a"
    renamed_parameters = subtraction("const float* b, const float* a, float* y", "y[0] = b[0] - a[0];")
    assert fingerprint(one) == fingerprint(renamed_parameters)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("int x = threadIdx.x; y[x] = 0;", "int y_ = threadIdx.y; y[y_] = 0;"),
        ("int x = threadIdx.x; y[x] = 0;", "int y = threadIdx.y; y[y] = 0;"),
        ("float x = v.x;", "float y = v.y;"),
        ("float x = p->x;", "float y = p->y;"),
        ("unsigned int n = (unsigned int)m;", "unsigned long n = (unsigned long)m;"),
        ("{ float expf = 0; } y[0] = expf(1);", "{ float logf = 0; } y[0] = logf(1);"),
        ("float a = 1, b = 2; y[0] = a+++b;", "float a = 1, b = 2; y[0] = a+ ++b;"),
        ("float α, β; y[0] = α - β;", "float α, β; y[0] = β - α;"),
        ("\n#define A 4\n+ 1;", "\n#define A 4 + 1\n;"),
        ("y[0] = 1; // y[0] = 2;", "y[0] = 1; y[0] = 2;"),
    ],
)  # fmt: skip
def test_names_that_look_like_variables_and_are_not_make_no_twins(one: str, other: str) -> None:
    first, second = (scaled_relu_program(KERNEL + text) for text in (one, other))
    assert fingerprint(first) != fingerprint(second)


def test_a_variable_that_moves_between_two_roles_is_news() -> None:
    one = edited(("sum + top", "sum * top + top"))
    other = edited(("sum + top", "sum * top + sum"))
    assert fingerprint(one) != fingerprint(other)


@settings(max_examples=100, deadline=None)
@given(programs)
def test_a_fingerprint_is_stable_and_short_for_any_program(program: Program) -> None:
    assert fingerprint(program) == fingerprint(Program.model_validate_json(program.model_dump_json()))
    assert len(fingerprint(program)) == 32
