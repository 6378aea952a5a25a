"""Situations that end before any value is compared: the plan, static analysis, the compiler, the sanitizer."""

from __future__ import annotations

from benchmarks.agents import kernels, problems
from benchmarks.agents.kernels import replaced
from benchmarks.agents.scaled_relu import KERNEL, scaled_relu_program, scaled_relu_step
from benchmarks.agents.situation import Fact, Situation
from memory.records import Status

_RELU = problems.scaled_relu()
_MEAN = problems.row_mean()


def _line(number: int, text: str) -> tuple[Fact, Fact]:
    return Fact("line", rf"\(line {number}\)"), Fact("text of the line", text)


PLAN = (
    Situation(
        "argument_count",
        "The plan gives a kernel of three parameters two arguments.",
        _RELU,
        scaled_relu_program(steps=(scaled_relu_step(args=("x", "y")),)),
        Status.SCHEMA_ERROR,
        "argument_count",
        (
            Fact("kernel", "scaled_relu"),
            Fact("parameters and arguments", r"takes 3 arguments .* is given 2\b"),
            Fact("parameters by name", r"\(x, weight, y\)"),
        ),
    ),
    Situation(
        "wrong_element_type",
        "A kernel takes half precision where the plan passes a buffer of float32.",
        _RELU,
        scaled_relu_program(
            "#include <cuda_fp16.h>\n"
            + replaced(
                replaced(KERNEL, "const float* weight", "const __half* weight"),
                "weight[i % COLS]",
                "__half2float(weight[i % COLS])",
            )
        ),
        Status.SCHEMA_ERROR,
        "dtype_mismatch",
        (
            Fact("parameter and tensor", r"weight points to f16 and tensor 'weight' holds f32"),
            Fact("place", r"steps\[0\] \(scaled_relu\)"),
            Fact("line", r"\(line 3\)"),
            Fact("text of the line", r"const __half\* weight"),
        ),
    ),
    Situation(
        "unknown_buffer",
        "The plan names a buffer that there is not.",
        _RELU,
        scaled_relu_program(steps=(scaled_relu_step(args=("x", "wieght", "y")),)),
        Status.SCHEMA_ERROR,
        "unknown_buffer",
        (
            Fact("name", "'wieght'"),
            Fact("place", r"steps\[0\]"),
            Fact("what there is", r"inputs and state: x, weight; buffers: y"),
        ),
    ),
    Situation(
        "grid_too_large",
        "A grid's second dimension is larger than hardware takes.",
        problems.scaled_relu(2048, 4096),
        scaled_relu_program(
            replaced(KERNEL, "blockIdx.x * blockDim.x", "blockIdx.y * blockDim.x"),
            steps=(scaled_relu_step(grid=("1", "ceil_div(ROWS * COLS, 64)", "1"), block=("64", "1", "1")),),
            tunables=(),
        ),
        Status.SCHEMA_ERROR,
        "grid_range",
        (Fact("size", r"131,?072"), Fact("limit", r"65,?535"), Fact("dimension", r"grid\.y")),
        twin=_RELU,
    ),
    Situation(
        "dynamic_shared_memory",
        "The plan asks for more dynamic shared memory than a block can have.",
        _MEAN,
        kernels.mean(
            replaced(
                kernels.MEAN_BY_BLOCK, "__shared__ float partial[BLOCK]", "extern __shared__ float partial[]"
            ),
            shared_bytes="BLOCK * 4096",
        ),
        Status.SCHEMA_ERROR,
        "shared_memory",
        (Fact("bytes asked", r"262,?144"), Fact("limit", r"232,?448"), Fact("place", r"steps\[0\]")),
    ),
)

TEXT = (
    Situation(
        "unguarded_tail",
        "Nothing keeps the threads behind the last element from writing.",
        _RELU,
        scaled_relu_program(replaced(KERNEL, "if (i < ROWS * COLS) {", "{")),
        Status.LINT_ERROR,
        "unguarded-tail",
        (
            *_line(5, r"float v = x\[i\] \* weight"),
            Fact("tensor, reach and size", r"`x\[i\]` goes up to element 1,407 .* `x` has 1,320"),
            Fact("remedy", r"guard the tail"),
        ),
    ),
    Situation(
        "undeclared_name",
        "A misspelt variable.",
        _RELU,
        scaled_relu_program(replaced(KERNEL, "y[i] = v < 0.0f ? 0.0f : v;", "y[i] = v < 0.0f ? 0.0f : vv;")),
        Status.COMPILE_ERROR,
        "nvrtc",
        (*_line(6, r"0\.0f : vv;"), Fact("message", r'identifier "vv" is undefined')),
    ),
    Situation(
        "missing_semicolon",
        "A statement without its semicolon.",
        _RELU,
        scaled_relu_program(replaced(KERNEL, "weight[i % COLS];", "weight[i % COLS]")),
        Status.COMPILE_ERROR,
        "nvrtc",
        (
            Fact("line", r"\(line [56]\)"),
            Fact("message", r'expected a ";"'),
            Fact("text of the line", r"y\[i\] = v"),
        ),
    ),
    Situation(
        "wrong_argument_type",
        "A function that takes a pointer is given a number.",
        _RELU,
        scaled_relu_program(
            "__device__ float at(const float* p, int i) { return p[i]; }"
            + replaced(KERNEL, "x[i] *", "at(x[i], i) *")
        ),
        Status.COMPILE_ERROR,
        "nvrtc",
        (
            *_line(5, r"at\(x\[i\], i\)"),
            Fact(
                "message", r'argument of type "float" is incompatible with parameter of type "const float \*"'
            ),
        ),
    ),
    Situation(
        "static_shared_memory",
        "A static shared array larger than a block can have.",
        _MEAN,
        kernels.mean(replaced(kernels.MEAN_BY_BLOCK, "partial[BLOCK]", "partial[BLOCK * 1024]")),
        Status.COMPILE_ERROR,
        "nvrtc",
        (
            Fact("bytes asked", r"262,?144|0x40000"),
            Fact("limit", r"232,?448|0x38c00"),
            Fact("kernel", "row_mean"),
        ),
    ),
)

SANITIZED = (
    Situation(
        "out_of_bounds_tail",
        "The tail's guard lets one thread too many through.",
        _RELU,
        scaled_relu_program(replaced(KERNEL, "i < ROWS * COLS", "i <= ROWS * COLS")),
        Status.SANITIZER_ERROR,
        "out_of_bounds",
        (
            *_line(5, r"float v = x\[i\] \* weight"),
            Fact("buffer and index", r"x\[1,?320\]"),
            Fact("size of the buffer", r"of 5,?280 bytes"),
            Fact("kernel", "scaled_relu"),
            Fact("thread", r"block \(10, 0, 0\), thread \(40, 0, 0\)"),
        ),
    ),
    Situation(
        "missing_barrier",
        "The tree of a block reduction has no barrier between its levels.",
        _MEAN,
        kernels.mean(
            replaced(
                kernels.MEAN_BY_BLOCK,
                "partial[threadIdx.x + half];\n    __syncthreads();",
                "partial[threadIdx.x + half];",
            )
        ),
        Status.SANITIZER_ERROR,
        "race",
        (
            *_line(9, r"partial\[threadIdx\.x\] \+= partial"),
            Fact("shared variable and index", r"partial\[\d+\]"),
            Fact("the other access", r"the other access is at line 9"),
            Fact("no barrier between", "no barrier between"),
        ),
    ),
    Situation(
        "barrier_in_a_branch",
        "Only half of a block's threads reach a barrier.",
        _MEAN,
        kernels.mean(
            replaced(
                kernels.MEAN_BY_BLOCK,
                "if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];\n    __syncthreads();",
                "if (threadIdx.x < half) {\n      partial[threadIdx.x] += partial[threadIdx.x + half];\n"
                "      __syncthreads();\n    }",
            )
        ),
        Status.SANITIZER_ERROR,
        "divergent_barrier",
        (*_line(11, r"__syncthreads\(\)"), Fact("kernel", "row_mean"), Fact("what diverges", r"32 of 64 threads")),
    ),
    Situation(
        "shuffle_mask",
        "A shuffle's mask leaves out lane 31, which takes part.",
        _MEAN,
        kernels.mean_by_warp(replaced(kernels.MEAN_BY_WARP, "0xffffffffu", "0x7fffffffu")),
        Status.SANITIZER_ERROR,
        "shuffle_fault",
        (
            *_line(5, r"__shfl_down_sync\(0x7fffffffu"),
            Fact("mask", r"mask 0x7fffffff"),
            Fact("lane", r"lane \d+ reads lane 31"),
        ),
    ),
    Situation(
        "unwritten_shared_memory",
        "Half of a shared array is read before anything is written there.",
        _MEAN,
        kernels.mean(
            replaced(
                kernels.MEAN_BY_BLOCK,
                "partial[threadIdx.x] = sum;",
                "if (threadIdx.x < 32) partial[threadIdx.x] = sum;",
            )
        ),
        Status.SANITIZER_ERROR,
        "uninitialised_shared",
        (*_line(9, r"partial\[threadIdx\.x \+ half\]"), Fact("shared variable and index", r"partial\[\d+\]")),
    ),
)  # fmt: skip
