"""Compiling: what is refused and how it is said, what is cached."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from memory.errors import ToolMissing
from tools.simulator.compiler import HostCompileError, HostCompiler
from tools.simulator.source import prepare

GOOD = 'extern "C" __global__ void k(float* out) {\n  out[threadIdx.x] = 1;\n}\n'


def refuse(compiler: HostCompiler, source: str, **defines: str) -> HostCompileError:
    with pytest.raises(HostCompileError) as caught:
        compiler.compile(source, defines, ["k"], instrumented=False)
    return caught.value


def test_a_syntax_error_has_line_message_and_excerpt(compiler: HostCompiler) -> None:
    error = refuse(compiler, 'extern "C" __global__ void k(float* out) {\n  out[0] = 1\n}\n')
    first = error.diagnostics[0]
    assert first.line in (2, 3)
    assert "expected ';'" in first.message
    assert first.excerpt in ("out[0] = 1", "}")


def test_an_unknown_name_is_named(compiler: HostCompiler) -> None:
    error = refuse(compiler, 'extern "C" __global__ void k(float* out) {\n\n  out[0] = nothing;\n}\n')
    assert [(d.line, "nothing" in d.message, d.excerpt) for d in error.diagnostics] == [
        (3, True, "out[0] = nothing;")
    ]


@pytest.mark.parametrize("spelling", ["asm", "__asm__", "asm volatile", "__asm"])
def test_inline_ptx_is_refused_with_its_line(compiler: HostCompiler, spelling: str) -> None:
    error = refuse(
        compiler,
        f'extern "C" __global__ void k(int* o) {{\n  {spelling}("mov.u32 %0, %laneid;" : "=r"(o[0]));\n}}\n',
    )
    assert [(d.line, d.message) for d in error.diagnostics] == [
        (2, "inline PTX is not supported by the simulator")
    ]


def test_ptx_in_comments_and_strings_is_no_ptx(compiler: HostCompiler) -> None:
    source = GOOD.replace("{\n", '{ // asm volatile("")\n /* asm */ const char* s = "asm"; (void)s;\n', 1)
    compiler.compile(source, {}, ["k"], instrumented=False)


def test_ptx_behind_token_pasting_is_refused(compiler: HostCompiler) -> None:
    error = refuse(compiler, "#define P(a, b) a##b\n" + GOOD.replace("out[", 'P(as, m)("nop"); out['))
    assert "inline PTX" in error.diagnostics[0].message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("#include <mma.h>", "tensor cores"),
        ('#include "/etc/passwd"', "not available"),
        ("#include </etc/hostname>", "not available"),
        ("#  include <fstream>", "not available"),
        ("#inc\\\nlude </etc/passwd>", "may not span lines"),
        ("#define F </etc/passwd>\n#include F", "not available"),
        ("%:include </etc/passwd>", "digraphs"),
    ],
)
def test_headers_that_a_device_does_not_have_are_refused(
    compiler: HostCompiler, line: str, message: str
) -> None:
    assert message in str(refuse(compiler, f"{line}\n{GOOD}"))


def test_usual_headers_are_accepted(compiler: HostCompiler) -> None:
    names = [
        "cuda_fp16.h",
        "cuda_bf16.h",
        "cuda_runtime.h",
        "cstdint",
        "cmath",
        "stdint.h",
        "type_traits",
        "limits",
    ]
    source = "".join(f"#include <{n}>\n" for n in names) + GOOD.replace(
        "1;", "std::is_same<int, int>::value + std::numeric_limits<float>::max();"
    )
    for instrumented in (False, True):
        compiler.compile(source, {}, ["k"], instrumented=instrumented)


def test_a_missing_kernel_is_an_error(compiler: HostCompiler) -> None:
    with pytest.raises(HostCompileError, match="absent"):
        compiler.compile(GOOD, {}, ["absent"], instrumented=False)


@pytest.mark.parametrize("defines", [{"A B": "1"}, {"A": "1\n#include </etc/passwd>"}])
def test_defines_cannot_smuggle_text(compiler: HostCompiler, defines: dict[str, str]) -> None:
    with pytest.raises(HostCompileError, match="define"):
        compiler.compile(GOOD, defines, ["k"], instrumented=False)


def test_endless_templates_end(cache_dir: Path) -> None:
    source = (
        "template <int A, int B> struct T { static const long v = T<A - 1, B>::v + T<A - 1, B + 1>::v; };\n"
    )
    source += GOOD.replace("= 1", "= T<100, 0>::v")
    started = time.monotonic()
    refuse(HostCompiler(cache_dir, timeout_s=3), source)
    assert time.monotonic() - started < 8


def test_a_second_compilation_comes_from_the_cache(compiler: HostCompiler) -> None:
    first = compiler.compile(GOOD, {}, ["k"], instrumented=True)
    started = time.monotonic()
    assert compiler.compile(GOOD, {}, ["k"], instrumented=True) == first
    assert time.monotonic() - started < 0.05


def test_a_missing_compiler_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing, match="apt-get install"):
        HostCompiler(tmp_path, cxx="no-such-compiler").compile(GOOD, {}, ["k"], instrumented=False)


def test_an_unroll_count_of_thousands_of_digits_is_cut_down() -> None:
    text = prepare(f"#pragma unroll {'9' * 5000}\nfor (;;) {{}}\n", {}, ["k"])
    assert "#pragma GCC unroll 128" in text


def test_rewrites_keep_line_numbers() -> None:
    source = (
        "#include <cuda_fp16.h>\n/* a\n b */\n#pragma unroll 4\nfor (;;) {}\nextern __shared__ float s[];\n"
        "static __shared__ int t;\n#pragma unroll\nmarker\n"
    )
    lines = prepare(source, {}, ["k"]).split('#line 1 "candidate.cu"\n')[1].splitlines()
    assert lines[8] == "marker"
    assert lines[3] == "#pragma GCC unroll 4"
    assert lines[5] == "float (&s)[] = reinterpret_cast<float (&)[]>(sim_dynamic_shared);"
    assert lines[6] == "__shared__  int t;" or lines[6] == "__shared__ int t;"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ('extern "C" void __tsan_write4(void*) {}', "reserved for the simulator"),
        ('extern "C" void __sanitizer_cov_trace_pc() {}', "reserved for the simulator"),
        ('extern "C" unsigned sim_lane() { return 0; }', "error|reserved|declaration"),
        ('__attribute__((no_sanitize("thread"))) __device__ void f(float* p) { p[99] = 1; }', "no_sanitize"),
        ("namespace sim { extern int launch_index; } __device__ int g() { return 1; }", ""),
    ],
)
def test_a_kernel_cannot_switch_its_observation_off(compiler: HostCompiler, code: str, says: str) -> None:
    source = f"{code}\n{GOOD}"
    if not says:
        compiler.compile(source, {}, ["k"], instrumented=True)
        return
    with pytest.raises(HostCompileError, match=says):
        compiler.compile(source, {}, ["k"], instrumented=True)


def test_a_kernel_cannot_reach_the_runners_state(compiler: HostCompiler) -> None:
    source = 'extern "C" int launch_index __attribute__((weak));\n' + GOOD.replace("= 1", "= launch_index++")
    with pytest.raises(HostCompileError, match="not available in device code"):
        compiler.compile(source, {}, ["k"], instrumented=False)
