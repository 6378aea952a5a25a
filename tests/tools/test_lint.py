"""Every rule has a source it must find something in and an honest twin it must leave alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.lint import LintFinding, lint

HONEST = """#include <cuda_fp16.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/std/cstdint>
#include <cub/block/block_reduce.cuh>

namespace cg = cooperative_groups;
__constant__ float table[4];
constexpr int kWarps = 8;
static const float kScale = 0.5f;
__device__ __forceinline__ float silu(float v) { return v / (1.0f + __expf(-v)); }
struct alignas(16) Pack { float4 a; __device__ float sum() const { return a.x + a.y; } };
template <int N> __device__ float power(float x);
template <int N> __device__ float power(float x) { return N == 0 ? 1.0f : x * power<N - 1>(x); }

// a comment may say clock64() or "#include <vector>", or static int x;
extern "C" __global__ void __launch_bounds__(256) k(const float* __restrict__ x, float* __restrict__ y, int n) {
  __shared__ float tile[256];
  extern __shared__ float dynamic[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  auto block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  float4 v(make_float4(0.f, 0.f, 0.f, 0.f));
  tile[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  #pragma unroll
  for (int step = 128; step > 0; step /= 2) {
    if (threadIdx.x < step) tile[threadIdx.x] += tile[threadIdx.x + step];
    __syncthreads();
  }
  if (i < n) y[i] = silu(tile[0]) * kScale + warp.size() + v.x;
}
"""


def kernel(body: str, params: str = "const float* x, float* y, int n", before: str = "") -> str:
    return f'{before}\nextern "C" __global__ void k({params}) {{\n{body}\n}}\n'


GUARDED = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i];"


def rules(source: str, severity: str | None = None) -> set[str]:
    return {f.rule for f in lint(source, ("k",)) if severity in (None, f.severity)}


def test_an_honest_kernel_with_every_allowed_construct_has_no_findings() -> None:
    assert lint(HONEST, ("k",)) == ()


SEVERE: list[tuple[str, str]] = [
    ("include", '#include "secrets.h"\n'),
    ("include", "#include </etc/passwd>\n"),
    ("include", "#include <../../etc/passwd>\n"),
    ("include", "#include <vector>\n"),
    ("include", "#include <cuda/std/chrono>\n"),
    ("include", "#define H <cuda_fp16.h>\n#include H\n"),
    ("include", "#inc\\\nlude </etc/passwd>\n"),
    ("include", "%:include </etc/passwd>\n"),
    ("include", "/* */ # /* */ include </etc/passwd>\n"),
    ("include", "/*\n// */ #include </etc/passwd>\n"),
    ("include", "#include_next <cuda_fp16.h>\n"),
    ("include", '__constant__ char c[] = {\n#embed "/etc/passwd"\n};\n'),
    ("include", "#if __has_include(</etc/shadow>)\n#endif\n"),
    ("line-directive", '#line 7 "other.cu"\n'),
    ("pragma", "#pragma GCC poison x\n"),
    ("pragma", '_Pragma("GCC poison x")\n'),
    ("reserved-name", "#define const\n"),
    ("reserved-name", "#undef __CUDA_ARCH__\n"),
    ("loose-splice", "// a \\ \nint hidden;\n"),
    ("raw-string", '#define A R"(\n/* )"\n'),
    ("attribute", "__attribute__((constructor)) void f() {}\n"),
    ("attribute", "[[gnu::constructor]] void f() {}\n"),
    ("host-code", "__host__ void f() {}\n"),
    ("undefined-function", 'extern "C" int elsewhere(const char*);\n'),
    ("host-call", "__device__ void f() { system(0); }\n"),
    ("host-call", "__device__ void f() { exit(0); }\n"),
    ("runtime-api", "__device__ void f(void** p) { cudaMalloc(p, 4); }\n"),
    ("device-launch", "__global__ void c() {}\n__device__ void f() { c<<<1, 1>>>(); }\n"),
    ("token-pasting", "#define J(a, b) a##b\n"),
    ("escaped-name", "__device__ int \\u0061b() { return 1; }\n"),
    ("mutable-global", "__device__ int calls = 0;\n"),
    ("mutable-global", "static float cache[1024];\n"),
    ("mutable-global", "__device__ const float* last;\n"),
    ("mutable-global", "__managed__ int seen;\n"),
    ("mutable-global", "namespace a { __device__ int seen; }\n"),
    ("mutable-global", "#define STATE __device__ int\nSTATE seen;\n"),
    ("mutable-global", "#define MAKE(n) __device__ int n;\nMAKE(seen)\n"),
    ("mutable-global", "template <int N> __device__ int seen;\n"),
    ("mutable-global", "struct S { static __device__ int seen; };\n"),
    ("mutable-global", "__device__ int f() { static int seen; return seen++; }\n"),
    ("dynamic-init", "__device__ int f() { return 1; }\nconst int v = f();\n"),
    ("dynamic-init", "struct S { S() {} int a; };\nconst S s;\n"),
    ("reads-time", "__device__ long long f() { return clock64(); }\n"),
    ("reads-time", "__device__ int f() { return clock(); }\n"),
    ("reads-time", "__device__ void f() { int a = 1'000; clock64(); int b = 1'000; }\n"),
    ("reads-time", '__device__ void f(long long* t) { asm("mov.u64 %0, %globaltimer;" : "=l"(*t)); }\n'),
    ("reads-time", "#define NOW clock64\n"),
    ("reads-time", '#define Q \'"\' "/*"\n__device__ long long f() { return clock64(); }\n#define E "*/"\n'),
    ("reads-time", '#define X /*\n " */ clock64() // "\n'),
    ("reads-time", '#define A u8R"( " )"\n__device__ long long f() { return clock64(); }\n'),
]


@pytest.mark.parametrize(("rule", "before"), SEVERE, ids=[f"{r}-{i}" for i, (r, _) in enumerate(SEVERE)])
def test_a_source_that_reaches_outside_its_kernel_is_severe(rule: str, before: str) -> None:
    assert rule in rules(kernel(GUARDED, before=before), "severe")


TWINS: list[str] = [
    "#include <cuda_bf16.h>\n",
    "// #include <vector> is not needed\n",
    "#include <cuda/std/limits>\n#include <mma.h>\n#include <cuda/pipeline>\n",
    "#define TWO_LINES \\\n  2\n// a \\ b\n",
    "#pragma once\n#pragma nv_diag_suppress 177\n",
    "#define TILE 32\n#define MY_CONST 4\n#define MIN2(a, b) ((a) < (b) ? (a) : (b))\n",
    "#define DEFINE_OP(name, e) __device__ float name(float v) { return e; }\nDEFINE_OP(twice, v * 2)\n",
    "__device__ __noinline__ float f(float a);\n__device__ float f(float a) { return a; }\n",
    "__attribute__((always_inline)) __device__ int f() { return 1; }\n",
    "struct S { static constexpr int kN = 4; int system_size; };\n",
    "__constant__ int dims[3] = {1, 2, 3};\nconstexpr float pi = 3.14f;\nconst int big = 1'000'000;\n",
    "__device__ const float* const none = nullptr;\n",
    "__device__ constexpr int cube(int a) { return a * a * a; }\nconstexpr int c8 = cube(2);\n",
    "struct S { __device__ S() {} int a; };\n__device__ int f() { S s; return s.a; }\n",
    "extern __shared__ float pool[];\n",
    "__device__ int f(int wall_clock) { return wall_clock; }\n",
    "__device__ int f(int a[1][1]) { int b[1] = {0}; return a[b[0]][0]; }\n",
    "enum class Mode { fast, slow };\nusing real = float;\ntypedef int index_t;\n",
    "template <typename T> struct Op { __device__ T operator()(T a) const { return a; } };\n",
]


@pytest.mark.parametrize("before", TWINS)
def test_an_honest_twin_has_no_findings(before: str) -> None:
    assert lint(kernel(GUARDED, before=before), ("k",)) == ()


WARNINGS: list[tuple[str, str, str]] = [
    (
        "missing-barrier",
        "__shared__ float s[256]; s[threadIdx.x] = x[threadIdx.x]; y[threadIdx.x] = s[255 - threadIdx.x];",
        "__shared__ float s[256]; s[threadIdx.x] = x[0]; __syncthreads(); y[threadIdx.x] = s[255 - threadIdx.x];",
    ),
    (
        "missing-barrier",
        "__shared__ float t; if (threadIdx.x == 0) t = x[0]; y[threadIdx.x] = t;",
        "__shared__ float t; if (threadIdx.x == 0) { t = x[0]; y[0] = t; } __syncthreads(); y[threadIdx.x] = t;",
    ),
    (
        "missing-barrier",
        "__shared__ float s[2][32]; s[0][threadIdx.x] = x[0]; float a = s[0][threadIdx.x ^ 1]; y[threadIdx.x] = a;",
        "__shared__ float s[2][32]; int t = threadIdx.x; s[0][t] = x[0]; float a = s[0][threadIdx.x]; y[t] = a;",
    ),
    (
        "missing-barrier",
        "__shared__ float s[64]; if (n > 3) s[threadIdx.x] = 1.f; else s[threadIdx.x] = 2.f; *y = s[threadIdx.x + 1];",
        "__shared__ float s[64]; if (n > 3) s[threadIdx.x] = 1.f; else y[1] = s[threadIdx.x + 1];",
    ),
    (
        "missing-barrier",
        "__shared__ float s[64]; int t = threadIdx.x; s[t] = x[t]; __syncthreads();"
        "for (int d = 32; d > 0; d /= 2) { if (t < d) s[t] += s[t + d]; } y[t] = s[t];",
        "__shared__ float s[64]; int t = threadIdx.x; s[t] = x[t]; __syncthreads();"
        "for (int d = 32; d > 0; d /= 2) { if (t < d) s[t] += s[t + d]; __syncthreads(); } y[t] = s[t];",
    ),
    (
        "missing-barrier",
        "__shared__ float s[32][33]; int tx = threadIdx.x, ty = threadIdx.y; float a = 0.f;"
        "for (int t = 0; t < n; ++t) { s[ty][tx] = x[t + tx]; __syncthreads();"
        "for (int i = 0; i < 32; ++i) a += s[ty][i]; } y[tx] = a;",
        "__shared__ float s[32][33]; int tx = threadIdx.x, ty = threadIdx.y; float a = 0.f;"
        "for (int t = 0; t < n; ++t) { s[ty][tx] = x[t + tx]; __syncthreads();"
        "for (int i = 0; i < 32; ++i) a += s[ty][i]; __syncthreads(); } y[tx] = a;",
    ),
    (
        "missing-barrier",
        "__shared__ float s[2][128]; int t = threadIdx.x; int b = 0; float a = 0.f; s[0][t] = x[t]; __syncthreads();"
        "for (int k = 0; k < n; ++k) { s[b][t] = x[k]; a += s[b][127 - t]; b ^= 1; __syncthreads(); } y[t] = a;",
        "__shared__ float s[2][128]; int t = threadIdx.x; int b = 0; float a = 0.f; s[0][t] = x[t]; __syncthreads();"
        "for (int k = 0; k < n; ++k) { s[b ^ 1][t] = x[k]; a += s[b][127 - t]; __syncthreads(); b ^= 1; } y[t] = a;",
    ),
    (
        "missing-barrier",
        "__shared__ float t; for (int k = 0; k < n; ++k) {"
        " if (threadIdx.x == 0) t = x[k]; __syncthreads(); y[threadIdx.x] += t; }",
        "__shared__ float t; for (int k = 0; k < n; ++k) {"
        " __syncthreads(); if (threadIdx.x == 0) t = x[k]; __syncthreads(); y[threadIdx.x] += t; }",
    ),
    (
        "missing-barrier",
        "__shared__ float p[32]; int w = threadIdx.x / 32, l = threadIdx.x % 32; p[w] = x[0]; __syncthreads();"
        "float v = p[l]; if (threadIdx.x == 0) p[0] = v; __syncthreads(); y[threadIdx.x] = p[0];",
        "__shared__ float p[32]; int w = threadIdx.x / 32, l = threadIdx.x % 32; p[w] = x[0]; __syncthreads();"
        "if (w == 0) { float v = p[l]; v += __shfl_xor_sync(~0u, v, 1); if (l == 0) p[0] = v; } __syncthreads();"
        "y[threadIdx.x] = p[0];",
    ),
    (
        "missing-barrier",
        "__shared__ float s[256]; int t = threadIdx.x; s[t * 4] = x[t]; y[t] = s[t * 2 + 1];",
        "__shared__ float s[256]; int t = threadIdx.x; for (int k = 0; k < 4; ++k) s[t * 4 + k] = x[k];"
        "y[t] = s[t * 4] + s[t * 4 + 3];",
    ),
    (
        "unguarded-tail",
        "int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = x[i];",
        "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; y[i] = x[i];",
    ),
    (
        "unguarded-tail",
        "y[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f;",
        "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 1.0f;",
    ),
    (
        "uncoalesced",
        "int t = threadIdx.x; if (t < n) y[t] = x[t * n];",
        "int t = threadIdx.x; if (t < n) y[t] = x[t + n * blockIdx.x];",
    ),
    (
        "uncoalesced",
        "int row = blockIdx.x * blockDim.x + threadIdx.x; if (row < n) for (int c = 0; c < n; ++c) y[row * n + c] = 0;",
        "int t = threadIdx.x; if (t < n) y[(t / 32) * n + t % 32] = 0.f;",
    ),
    (
        "index-overflow",
        "int c = blockIdx.x, h = blockIdx.y; if (h < n) y[((blockIdx.z * n + c) * n + h) * n + threadIdx.x] = 0.f;",
        "long long b = blockIdx.z; int c = blockIdx.x; if (c < n) y[((b * n + c) * n + c) * n + threadIdx.x] = 0.f;",
    ),
    (
        "inline-ptx",
        'float v; asm("mov.f32 %0, 0f00000000;" : "=f"(v)); y[threadIdx.x] = v;',
        "float v = 0.f; y[threadIdx.x] = v;",
    ),
]


@pytest.mark.parametrize(
    ("rule", "bad", "good"), WARNINGS, ids=[f"{w[0]}-{i}" for i, w in enumerate(WARNINGS)]
)
def test_a_doubtful_access_is_warned_of_and_its_twin_is_not(rule: str, bad: str, good: str) -> None:
    assert rules(kernel(bad)) == {rule}
    assert rules(kernel(good)) == set()
    assert rules(kernel(bad), "severe") == set()


def test_a_finding_names_the_line_it_stands_on() -> None:
    found = lint(kernel(GUARDED, before="constexpr int a = 1;\n\\\n__device__ int seen;"), ("k",))
    assert [(f.rule, f.line) for f in found] == [("mutable-global", 2)]


def test_an_entry_must_exist_and_should_have_c_linkage() -> None:
    assert rules("__global__ void other() {}") == {"entry-not-found"}
    assert rules("__global__ void k(float* y) { y[0] = 1.f; }") == {"entry-not-extern-c"}
    assert rules("template <int N> __global__ void k(float* y) { y[0] = N; }") == {"entry-is-template"}
    assert rules('extern "C" {\n__global__ void k(float* y) { y[0] = 1.f; }\n}') == set()


def test_severe_findings_come_first_and_carry_a_remedy() -> None:
    found = lint(kernel("y[blockIdx.x * blockDim.x + threadIdx.x] = clock64();"), ("k",))
    assert [f.severity for f in found] == ["severe", "warning"]
    assert all(f.remedy and f.message for f in found)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="abk#\"'/*\\\n (){};<>_R0 include__device__", max_size=200))
def test_lint_never_raises_whatever_the_text(text: str) -> None:
    assert all(isinstance(f, LintFinding) for f in lint(text, ("k",)))
