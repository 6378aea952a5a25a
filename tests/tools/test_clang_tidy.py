"""clang-tidy on kernels: what it finds and where, what it must leave alone, and what it must not be able to do."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from graph.doctor import clang_tidy_check
from memory.records import Stage, Status
from tests.cases import scaled_relu_case
from tests.problems import KERNEL, scaled_relu_problem, scaled_relu_program
from tools.clang_tidy import Analysis, analyse, clang_tidy_version, find_clang_tidy
from tools.clang_tidy_checks import CHECKS, REMEDIES
from tools.devices.port import Device
from tools.evaluation import evaluate
from tools.lint import lint_plan
from tools.program import validate

needs_clang_tidy = pytest.mark.skipif(find_clang_tidy() is None, reason="clang-tidy is not installed")
DEFINES = {"N": "100", "TILE": "16"}


def kernel(body: str, before: str = "") -> str:
    return f'{before}\nextern "C" __global__ void k(const float* x, float* y, const int* c, int n) {{\n{body}\n}}\n'


def judged(body: str, before: str = "") -> set[tuple[str, str]]:
    analysis = analyse(kernel(body, before), DEFINES)
    assert analysis.unread is None
    return {(f.rule.removeprefix("clang-diagnostic-"), f.severity) for f in analysis.findings}


SEVERE: list[tuple[str, str, str]] = [
    ("uninitialized", "float v; y[0] = v + x[0];", "float v = 1.f; y[0] = v + x[0];"),
    (
        "uninitialized",
        "float a; for (int i = 0; i < n; ++i) a += x[i]; y[0] = a;",
        "float a = 0.f; for (int i = 0; i < n; ++i) a += x[i]; y[0] = a;",
    ),
    (
        "array-bounds",
        "float p[TILE]; p[TILE] = x[0]; y[0] = p[0];",
        "float p[TILE]; p[TILE - 1] = x[0]; y[0] = p[15];",
    ),
    (
        "array-bounds",
        "__shared__ float s[32]; s[N] = x[0];",
        "__shared__ float s[32]; if (N < 32) s[N] = x[0]; if (N > 32) s[31] = x[0];",
    ),
    ("division-by-zero", "y[0] = n % (N - 100);", "y[0] = n % (N - 99);"),
    ("null-dereference", "y[0] = *(const float*)0;", "y[0] = *(const float*)x;"),
    ("infinite-recursion", "y[0] = 1.f;", "y[1] = 1.f;"),
    ("integer-overflow", "if (n < N * 100000000) y[0] = 1.f;", "if (n < N * 100000000LL) y[0] = 1.f;"),
    (
        "constant-conversion",
        "int all = N * 100000000LL; y[0] = all;",
        "long long all = N * 100000000LL; y[0] = all;",
    ),
    (
        "clang-analyzer-core.DivideZero",
        "int d = 0; int q = n / d; y[q] = 1.f;",
        "int d = 0; if (d > 0) d = n / d; y[d] = 1.f;",
    ),
    (
        "clang-analyzer-core.NullDereference",
        "const float* p = nullptr; y[0] = *p;",
        "const float* p = nullptr; p = x; y[0] = *p;",
    ),
    (
        "clang-analyzer-core.uninitialized.Assign",
        "float p[4]; for (int i = 0; i < 3; ++i) p[i] = x[i]; y[0] = p[3];",
        "float p[4]; for (int i = 0; i < 4; ++i) p[i] = x[i]; y[0] = p[3];",
    ),
]
RECURSION = {
    "infinite-recursion": (
        "__device__ float f(float v) { return f(v - 1.f); }",
        "template <int D> __device__ float f(float v) { if constexpr (D > 0) return f<D - 1>(v); return v; }",
    )
}


@needs_clang_tidy
@pytest.mark.parametrize(("rule", "bad", "good"), SEVERE, ids=[f"{s[0]}-{i}" for i, s in enumerate(SEVERE)])
def test_what_is_certainly_wrong_is_severe_and_its_twin_is_silent(rule: str, bad: str, good: str) -> None:
    before_bad, before_good = RECURSION.get(rule, ("", ""))
    assert judged(bad, before_bad) == {(rule, "severe")}
    assert judged(good, before_good) == set()


WARNINGS: list[tuple[str, str, str]] = [
    (
        "sometimes-uninitialized",
        "float v; if (n > 3) v = x[0]; y[0] = v;",
        "float v; if (n > 3) v = x[0]; else v = 0.f; y[0] = v;",
    ),
    ("integer-overflow", "if (n > 9) y[0] = n < N * 100000000;", "if (n > 9) y[0] = n < N * 100000LL;"),
    ("shift-count-overflow", "y[0] = 1 << (N / 2);", "y[0] = 1 << (N / 10);"),
    ("parentheses", "if (n = 3) y[0] = 1.f;", "if (n == 3) y[0] = 1.f;"),
    ("unused-comparison", "y[0] == x[0];", "y[0] = x[0];"),
    (
        "bugprone-integer-division",
        "float half = n / 2; y[0] = half;",
        "float half = (float)(n / 2); y[0] = half;",
    ),
    (
        "bugprone-suspicious-semicolon",
        "if (threadIdx.x < N); y[0] = 1.f;",
        "if (threadIdx.x < N) y[0] = 1.f;",
    ),
    ("bugprone-chained-comparison", "if (0 < n < N) y[0] = 1.f;", "if (0 < n && n < N) y[0] = 1.f;"),
    (
        "bugprone-misplaced-widening-cast",
        "long long at = (long long)(c[0] * n); y[at] = 1.f;",
        "long long at = (long long)c[0] * n; y[at] = 1.f;",
    ),
    (
        "bugprone-infinite-loop",
        "int i = 0; while (i < n) y[i] = 1.f;",
        "int i = 0; while (i < n) y[i++] = 1.f;",
    ),
    (
        "tautological-unsigned-zero-compare",
        "unsigned r = threadIdx.x - 1; if (r >= 0) y[r] = 1.f;",
        "int r = (int)threadIdx.x - 1; if (r >= 0) y[r] = 1.f;",
    ),
    ("clang-analyzer-core.DivideZero", "if (n == 0) y[1 / n] = 1.f;", "if (n != 0) y[1 / n] = 1.f;"),
]


@needs_clang_tidy
@pytest.mark.parametrize(
    ("rule", "bad", "good"), WARNINGS, ids=[f"{w[0]}-{i}" for i, w in enumerate(WARNINGS)]
)
def test_what_is_often_wrong_is_a_warning_and_its_twin_is_silent(rule: str, bad: str, good: str) -> None:
    assert (rule, "warning") in judged(bad)
    assert judged(good) == set()


HONEST: dict[str, str] = {
    "a vector's members as an array": "float4 v = ((const float4*)x)[0]; y[0] = (&v.x)[3];",
    "a vector load into halves": "__half h[8]; *(float4*)h = *(const float4*)x; y[0] = __half2float(h[5]);",
    "halves inside a vector": "uint4 w = *(const uint4*)x; const __half2* h = (const __half2*)&w;"
    "float a = 0.f; for (int i = 0; i < 4; ++i) a += __low2float(h[i]); y[0] = a;",
    "bits through a union": "union { float f; unsigned u; } b; b.f = x[0]; b.u &= 0x7fffffffu; y[0] = b.f;",
    "a shared number that another thread sets": "__shared__ int k; if (threadIdx.x == 0) k = c[0]; __syncthreads();"
    "y[n / k] = 1.f;",
    "a shared count that others raise": "__shared__ int k[2]; k[0] = 0; __syncthreads();"
    "atomicAdd(&k[threadIdx.x % 2], 1); __syncthreads(); y[0] = n % k[0];",
    "values kept under the same condition": "float p[4]; bool live = threadIdx.x < n;"
    "for (int i = 0; i < 4; ++i) if (live && i < n) p[i] = x[i];"
    "for (int i = 0; i < 4; ++i) if (live && i < n) y[i] = p[i];",
    "an unsigned index against an int": "if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x];",
    "a 32-bit product as a pointer's offset": "const float* row = x + blockIdx.x * n; y[0] = row[0];",
    "a constant that only one size needs": "if (N > 4096) { int big = N * 100; y[0] = big; }",
    "a comparison with itself": "float v = x[0]; y[0] = v != v ? 0.f : v;",
    "dynamic shared memory": "extern __shared__ __align__(16)\n unsigned char pool[]; float* s = (float*)pool;"
    "s[threadIdx.x] = 0;",
    "a shuffle tree": "float v = x[0]; for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d); y[0] = v;",
    "a vote": "unsigned m = __ballot_sync(~0u, x[0] > 0); if (m) y[0] = __popc(m) + __ffs(m);",
}


@needs_clang_tidy
@pytest.mark.parametrize("name", sorted(HONEST))
def test_an_honest_idiom_is_left_alone(name: str) -> None:
    assert judged(HONEST[name], "#include <cuda_fp16.h>") == set()


@needs_clang_tidy
def test_findings_stand_on_the_authors_lines() -> None:
    source = (
        "#include <cuda_fp16.h>\n// one\n/* two\n three */\n#define HALF(a) ((a) / 2)\n"
        'extern "C" __global__ void k(float* y, int n) {\n'
        "  extern __shared__\n    float s[];\n  float v; // int w;\n\n  y[0] = v; y[1] = v;\n}\n"
    )
    analysis = analyse(source, {"A": "1", "B": "2"})
    assert [(f.line, f.rule) for f in analysis.findings] == [(11, "clang-diagnostic-uninitialized")]
    assert "'v'" in analysis.findings[0].message and analysis.findings[0].remedy


@needs_clang_tidy
def test_a_source_cannot_silence_its_findings() -> None:
    for mark in ("// NOLINT", "/* NOLINT */", '; const char* NOLINT = "NOLINT"'):
        assert judged(
            f"float v; y[0] = v{mark if mark.startswith(';') else ''}; {'' if mark[0] == ';' else mark}"
        )
    assert judged('/* NOLINTBEGIN */ float v; const char* a = "NOLINTNEXTLINE";\ny[0] = v;')


@needs_clang_tidy
def test_every_check_of_the_list_exists() -> None:
    done = subprocess.run(
        [str(find_clang_tidy()), f"--checks={CHECKS}", "--list-checks"],
        capture_output=True,
        text=True,
        check=True,
    )
    listed = {line.strip() for line in done.stdout.splitlines()[1:] if line.strip()}
    ours = {name for name in REMEDIES if not name.startswith("clang-diagnostic-")}
    assert ours <= listed


@needs_clang_tidy
@pytest.mark.parametrize(
    ("source", "why"),
    [
        ('asm("trap;");', "inline PTX"),
        ("y[0] = undeclared;", "undeclared"),
        ("wmma::fill_fragment(x, 0.f);", "wmma"),
    ],
)
def test_what_cannot_be_read_is_not_judged(source: str, why: str) -> None:
    analysis = analyse(kernel(f"float v; y[0] = v; {source}"), {})
    assert analysis.findings == ()
    assert analysis.unread is not None and why in analysis.unread


def script(folder: Path, text: str) -> Path:
    path = folder / "clang-tidy"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    "source",
    [
        '#include "/etc/passwd"\n',
        "#include </etc/passwd>\n",
        "#include <../../etc/passwd>\n",
        "#define H </etc/passwd>\n#include H\n",
        '__constant__ char c[] = {\n#embed "/etc/passwd"\n};\n',
        "#inc\\\nlude </etc/passwd>\n",
        "#if __has_include(</etc/shadow>)\n#endif\n",
        "%:include </etc/passwd>\n",
    ],
)
def test_a_source_that_names_files_is_never_shown_to_it(source: str, tmp_path: Path) -> None:
    marker = tmp_path / "started"
    fake = script(tmp_path, f"touch {marker}")
    analysis = analyse(source + kernel(""), {}, lambda: fake)
    assert analysis.unread is not None
    assert not marker.exists()
    assert analyse(kernel(""), {}, lambda: fake).unread is None
    assert marker.exists()


def test_the_source_is_a_file_of_its_own_folder_and_no_argument(tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    fake = script(tmp_path, f'printf "%s\\n" "$@" > {shown}; ls >> {shown}; pwd >> {shown}')
    analyse(kernel("y[0] = 42424242.f;"), {"N": "1; touch gone"}, lambda: fake)
    text = shown.read_text()
    assert "42424242" not in text and "touch gone" not in text
    assert not Path(text.splitlines()[-1]).exists()


def test_an_analysis_that_hangs_or_takes_too_much_memory_is_ended(tmp_path: Path) -> None:
    started = time.monotonic()
    hanging = script(tmp_path, "while :; do :; done")
    overran = analyse(kernel("y[0] = 1.f;"), {}, lambda: hanging)
    assert "took longer" in str(overran.unread) and not overran.lasting
    assert time.monotonic() - started < 30
    (tmp_path / "greedy").mkdir()
    greedy = script(tmp_path / "greedy", 'exec python3 -c "bytearray(4 << 30)"')
    died = analyse(kernel("y[0] = 1.f;"), {}, lambda: greedy)
    assert died.unread == "clang-tidy ended with status 1" and not died.lasting


def test_a_source_is_analysed_once_for_each_set_of_macros(tmp_path: Path) -> None:
    log = tmp_path / "log"
    fake = script(tmp_path, f"echo run >> {log}")
    for defines in ({"N": "1"}, {"N": "1"}, {"N": "2"}, {"N": "1"}):
        analyse(kernel(""), defines, lambda: fake)
    assert log.read_text().count("run") == 2


def test_without_clang_tidy_nothing_fails_and_the_doctor_says_what_is_lost() -> None:
    assert analyse(kernel("float v; y[0] = v;"), {}, lambda: None) == Analysis(
        (), "clang-tidy is not installed"
    )
    check = clang_tidy_check(None)
    assert not check.found and not check.needed
    assert "pip install 'warpsmith[analysis]'" in check.detail
    assert clang_tidy_check("23.1.4").found


@needs_clang_tidy
def test_the_doctor_names_the_installed_version() -> None:
    version = clang_tidy_version()
    assert version is not None
    assert clang_tidy_check(version).detail == version


@needs_clang_tidy
def test_a_severe_finding_ends_the_evaluation_before_the_device(
    simulated_h200: Device, tmp_path: Path
) -> None:
    source = KERNEL.replace("float v = x[i] * weight[i % COLS];", "float v; v += x[i] * weight[i % COLS];")
    evaluation = evaluate(scaled_relu_program(source), scaled_relu_case(tmp_path), simulated_h200)
    assert evaluation.status is Status.LINT_ERROR
    assert evaluation.stage is Stage.LINT
    first = evaluation.diagnostics[0]
    assert (first.rule, first.line, first.severe) == ("clang-diagnostic-uninitialized", 5, True)
    assert "give the variable a value" in first.message
    assert "compile" not in evaluation.seconds


@needs_clang_tidy
def test_a_warning_travels_with_the_verdict(simulated_h200: Device, tmp_path: Path) -> None:
    source = KERNEL.replace("y[i] =", "float row = i / COLS; y[i] = row < 0.0f ? row :")
    evaluation = evaluate(scaled_relu_program(source), scaled_relu_case(tmp_path), simulated_h200)
    assert evaluation.status is Status.PASSED, evaluation.diagnostics
    assert [(d.rule, d.severe) for d in evaluation.diagnostics] == [("bugprone-integer-division", False)]


def test_a_source_with_severe_lints_is_not_shown_to_clang_tidy(simulated_h200: Device) -> None:
    source = KERNEL.replace("float v =", "float w; float v = w + clock64() +")
    plan, complaints = validate(scaled_relu_program(source), scaled_relu_problem(), simulated_h200.gpu)
    assert plan is not None and not complaints
    assert [f.rule for f in lint_plan(plan)] == ["reads-time"]
