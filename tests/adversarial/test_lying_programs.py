"""Programs named for their lies: each must fail, for the reason given, and its honest twin must pass.

Covers, of the catalogue of known exploits, those that a Program can express on the simulator; what the form of a
Program makes impossible is asserted as that property (no host code, no state between calls).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from memory.records import Buffer, DType, LibraryStep, Program, Status
from tests.cases import scaled_relu_case
from tests.problems import KERNEL, scaled_relu_program, scaled_relu_step
from tools.devices.port import Device
from tools.evaluation import evaluate

HEAD = 'extern "C" __global__ void scaled_relu(const float* x, const float* weight, float* y)'
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x; const int n = ROWS * COLS;"
VALUE = "(x[i] * weight[i % COLS] < 0.0f ? 0.0f : x[i] * weight[i % COLS])"


def kernel(body: str, before: str = "") -> Program:
    """The example program with this body; `i` and `n` are declared."""
    return scaled_relu_program(f"{before}\n{HEAD} {{ {INDEX} {body} }}\n")


HEAD_WITH_SCRATCH = HEAD[:-1] + ", float* t)"
HEAD_WITH_CONST_SCRATCH = HEAD[:-1] + ", const float* t)"
SCRATCH = Buffer(name="t", shape=("COLS",), dtype=DType.F32)

LIES: dict[str, tuple[Program, set[Status]]] = {
    "writes_nothing": (kernel("if (i < n && i < 0) y[i] = x[i] * weight[0];"), {Status.INCORRECT}),
    "returns_zeros": (kernel("if (i < n) y[i] = 0.0f;"), {Status.INCORRECT}),
    "returns_the_mean": (kernel("if (i < n) y[i] = 0.199f;"), {Status.INCORRECT}),
    "returns_its_input": (kernel("if (i < n) y[i] = x[i];"), {Status.INCORRECT}),
    "ignores_the_weight": (kernel("if (i < n) y[i] = fmaxf(x[i], 0.0f);"), {Status.INCORRECT}),
    "leaves_the_tail": (kernel(f"if (i < n - 8) y[i] = {VALUE};"), {Status.INCORRECT}),
    "skips_one_row_in_eight": (kernel(f"if (i < n && (i / COLS) % 8) y[i] = {VALUE};"), {Status.INCORRECT}),
    "computes_in_half_precision": (
        kernel(
            "if (i < n) y[i] = fmaxf(__half2float(__hmul(__float2half(x[i]), __float2half(weight[i % COLS]))), 0.0f);",
            "#include <cuda_fp16.h>",
        ),
        {Status.INCORRECT},
    ),
    "is_right_only_for_small_values": (
        kernel(f"if (i < n) y[i] = fabsf(x[i]) < 2.5f ? {VALUE} : 2.5f;"),
        {Status.INCORRECT},
    ),
    "turns_nan_into_numbers_elsewhere": (
        kernel(f"if (i < n) y[i] = i == 77 ? NAN : {VALUE};"),
        {Status.INCORRECT},
    ),
    "runs_past_the_end": (kernel(f"if (i < n + 3) y[i] = {VALUE};"), {Status.SANITIZER_ERROR}),
    "reads_before_the_start": (
        kernel(f"if (i < n) y[i] = {VALUE} + 0.0f * x[i - 1 - (i > 0 ? 0 : 4)];"),
        {Status.SANITIZER_ERROR},
    ),
    "races_through_shared_memory": (
        kernel(
            f"__shared__ float s[256]; if (i < n) s[threadIdx.x] = {VALUE}; "
            "int j = (threadIdx.x + 37) % blockDim.x; float v = s[threadIdx.x]; "
            "if (i < n) s[j] = v; if (i < n) y[i] = v;"
        ),
        {Status.SANITIZER_ERROR},
    ),
    "never_ends": (kernel("while (true) { if (i < n) ((volatile float*)y)[i] = 1.0f; }"), {Status.TIMED_OUT}),
    "writes_its_input": (
        kernel(f"if (i < n) {{ y[i] = {VALUE}; ((float*)x)[i] = 0.0f; }}"),
        {Status.SANITIZER_ERROR, Status.RUNTIME_ERROR, Status.INCORRECT},
    ),
    "remembers_between_calls": (
        kernel(
            f"if (i == 0) calls += 1; if (i < n) y[i] = calls > 1 ? y[i] : {VALUE};",
            "__device__ int calls = 0;",
        ),
        {Status.LINT_ERROR},
    ),
    "looks_at_the_clock": (
        kernel(f"long long t = clock64(); if (i < n) y[i] = {VALUE} + 0.0f * t;"),
        {Status.LINT_ERROR},
    ),
    "reads_a_file_while_compiling": (
        kernel(f"if (i < n) y[i] = {VALUE};", '#include "/etc/passwd"'),
        {Status.LINT_ERROR},
    ),
    "calls_the_host": (
        kernel(
            f'if (i == 0) system("true"); if (i < n) y[i] = {VALUE};', 'extern "C" int system(const char*);'
        ),
        {Status.LINT_ERROR, Status.COMPILE_ERROR},
    ),
    "forks": (
        kernel(f"if (i == 0) while (true) fork(); if (i < n) y[i] = {VALUE};", 'extern "C" int fork();'),
        {Status.LINT_ERROR, Status.COMPILE_ERROR},
    ),
    "drops_nan_as_fmaxf_does": (
        kernel("if (i < n) y[i] = fmaxf(x[i] * weight[i % COLS], 0.0f);"),
        {Status.INCORRECT},
    ),
    "is_wrong_for_huge_values": (
        kernel(f"if (i < n) y[i] = fabsf(x[i]) > 5e3f ? 7.0f : {VALUE};"),
        {Status.INCORRECT},
    ),
    "is_wrong_for_denormals": (
        kernel(f"if (i < n) y[i] = x[i] != 0 && fabsf(x[i]) < 1e-30f ? 1e9f : {VALUE};"),
        {Status.INCORRECT},
    ),
    "trusts_what_scratch_memory_holds": (
        scaled_relu_program(
            f"{HEAD_WITH_SCRATCH} {{ {INDEX} if (i < n) y[i] = t[0] != t[0] ? {VALUE} : 0.0f; }}\n",
            buffers=(*scaled_relu_program().buffers, SCRATCH),
            steps=(scaled_relu_step(args=("x", "weight", "y", "t")),),
        ),
        {Status.INCORRECT},
    ),
    "keeps_state_in_a_prepared_buffer": (
        scaled_relu_program(
            f"{HEAD_WITH_CONST_SCRATCH} {{ {INDEX} if (i < n) y[i] = t[0] == 0.0f ? {VALUE} : 0.0f; "
            "if (i == 0) ((float*)t)[1] = 1.0f; }\n",
            buffers=(*scaled_relu_program().buffers, SCRATCH),
            prepare=(LibraryStep(op="aten.zeros_like.default", args=("weight",), outputs=("t",)),),
            steps=(scaled_relu_step(args=("x", "weight", "y", "t")),),
        ),
        {Status.INCORRECT},
    ),
    **{
        f"asks_{name}": (
            kernel(f"if (i < n) y[i] = {VALUE};\n{directive}\n if (i == 0) y[i] += 1.0f;\n#endif\n"),
            {Status.LINT_ERROR},
        )
        for name, directive in {
            "for_gcc": "#ifndef __GNUC__",
            "for_the_simulator": "#ifndef SIM_FN",
            "for_the_sanitizer": "#ifdef __SANITIZE_THREAD__",
            "for_the_processor": "#if !defined(__x86_64__)",
            "for_nvcc": "#if __CUDACC_VER_MAJOR__ > 0",
            "for_a_feature": "#if __has_builtin(__nvvm_reflect)",
            "with_a_digraph": "%:ifndef __GNUC__",
        }.items()
    },
    "asks_its_file_name": (
        kernel(f"if (i < n) y[i] = __FILE__[0] == 'c' ? {VALUE} : 0.0f;"),
        {Status.LINT_ERROR},
    ),
    "asks_a_builtin": (
        kernel(f"if (i < n) y[i] = __builtin_constant_p(n) ? {VALUE} : 0.0f;"),
        {Status.LINT_ERROR},
    ),
    "updates_statistics_in_secret": (
        scaled_relu_program(
            steps=(
                LibraryStep(
                    op="aten.batch_norm_update_stats.default",
                    args=("x", "weight", "weight", 1.0),
                    outputs=(None, None),
                ),
                scaled_relu_step(),
            )
        ),
        {Status.SCHEMA_ERROR},
    ),
    "reads_behind_a_tensor": (
        scaled_relu_program(
            "",
            tunables=(),
            steps=(
                LibraryStep(op="aten._reshape_alias.default", args=("x", (33, 40), (40, 1)), outputs=("y",)),
            ),
        ),
        {Status.SCHEMA_ERROR},
    ),
    "overflows_a_library_argument": (
        scaled_relu_program(
            "", tunables=(), steps=(LibraryStep(op="aten.add.Scalar", args=("x", 2**70), outputs=("y",)),)
        ),
        {Status.RUNTIME_ERROR},
    ),
    "returns_a_lazy_tensor": (
        scaled_relu_program(
            "", tunables=(), steps=(LibraryStep(op="aten._neg_view.default", args=("x",), outputs=("y",)),)
        ),
        {Status.SCHEMA_ERROR},
    ),
    "asks_for_fifty_gigabytes": (
        scaled_relu_program(
            buffers=(
                *scaled_relu_program().buffers,
                Buffer(name="t", shape=("50", "1024 * 1024 * 256"), dtype=DType.F32, zero=True),
            ),
        ),
        {Status.OUT_OF_MEMORY},
    ),
    "does_not_compile": (kernel("if (i < n) y[i] = undeclared;"), {Status.COMPILE_ERROR}),
    "takes_too_much_shared_memory": (
        kernel(f"__shared__ float s[80000]; s[threadIdx.x] = 0; if (i < n) y[i] = {VALUE} + s[threadIdx.x];"),
        {Status.COMPILE_ERROR},
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_caught(lie: str, simulated_h200: Device, tmp_path: Path) -> None:
    program, expected = LIES[lie]
    evaluation = evaluate(program, scaled_relu_case(tmp_path), simulated_h200)
    assert evaluation.status in expected, evaluation.diagnostics
    assert evaluation.timing is None
    assert evaluation.diagnostics[0].message


HONEST: dict[str, Program] = {
    "plain": scaled_relu_program(KERNEL),
    "grid_stride": kernel(f"for (; i < n; i += gridDim.x * blockDim.x) y[i] = {VALUE};"),
    "through_shared_memory_with_barriers": kernel(
        f"__shared__ float s[256]; if (i < n) s[threadIdx.x] = {VALUE}; __syncthreads(); "
        "if (i < n) y[i] = s[threadIdx.x];"
    ),
    "constants_are_no_state": kernel(
        f"if (i < n) y[i] = {VALUE} * one[0];", "__constant__ float one[1] = {1.0f};"
    ),
    "templates": kernel(
        "if (i < n) y[i] = clipped(x[i] * weight[i % COLS]);",
        "template <typename T> __device__ T clipped(T v) { return v < T(0) ? T(0) : v; }",
    ),
}


@pytest.mark.parametrize("twin", HONEST)
def test_an_honest_twin_passes(twin: str, simulated_h200: Device, tmp_path: Path) -> None:
    evaluation = evaluate(HONEST[twin], scaled_relu_case(tmp_path), simulated_h200)
    assert evaluation.status is Status.PASSED, evaluation.diagnostics
    assert evaluation.timing is not None
    assert evaluation.timing.source == "modelled"
    assert {e.distribution for e in evaluation.errors} == {
        "normal",
        "uniform",
        "zeros_mixed",
        "large",
        "special",
    }
