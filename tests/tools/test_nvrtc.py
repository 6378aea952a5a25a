"""The compiler end to end, with the real NVRTC: results, diagnostics, isolation. No GPU is needed."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.errors import BadInput
from tools.nvrtc import Compiled, CompileRejected, CompileRequest, NvrtcCompiler
from tools.nvrtc_child import CompileJob, RawCompile
from tools.nvrtc_worker import CompileWorker

SCALE = """extern "C" __global__ void scale(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * FACTOR;
}
"""


ENDLESS = """template <long long P, int D> struct Tree {
  static constexpr int v = Tree<2 * P, D - 1>::v + Tree<2 * P + 1, D - 1>::v;
};
template <long long P> struct Tree<P, 0> { static constexpr int v = 1; };
extern "C" __global__ void k(int* y) { y[0] = Tree<1, 40>::v; }
"""


@pytest.fixture(scope="module")
def compiler() -> Iterator[NvrtcCompiler]:
    with NvrtcCompiler(None, timeout_s=60) as made:
        yield made


def compiled(compiler: NvrtcCompiler, source: str, *entries: str, **options: object) -> Compiled:
    request = CompileRequest(source, "sm_90a", entries=entries, **options)  # type: ignore[arg-type]
    result = compiler.compile(request)
    assert isinstance(result, Compiled), result
    return result


def rejected(compiler: NvrtcCompiler, source: str, *entries: str, arch: str = "sm_80") -> CompileRejected:
    result = compiler.compile(CompileRequest(source, arch, entries=entries))
    assert isinstance(result, CompileRejected), result
    return result


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
def test_a_kernel_compiles_to_a_cubin_for_each_architecture(compiler: NvrtcCompiler, arch: str) -> None:
    result = compiler.compile(CompileRequest(SCALE, arch, (("FACTOR", "2.0f"),), ("scale",)))
    assert isinstance(result, Compiled)
    assert result.cubin.startswith(b"\x7fELF")
    assert result.resources["scale"].registers > 0
    assert result.resources["scale"].constant_bytes > 0
    assert result.warnings == () and not result.cached and 0 < result.seconds < 30


def test_resources_tell_shared_memory_stack_and_spills(compiler: NvrtcCompiler) -> None:
    shared = compiled(
        compiler,
        'extern "C" __global__ void k(float* y) { __shared__ float s[32]; s[threadIdx.x] = y[threadIdx.x];'
        " __syncthreads(); y[threadIdx.x] = s[31 - threadIdx.x]; }",
        "k",
    )
    assert shared.resources["k"].static_shared_bytes == 128
    stack = compiled(
        compiler,
        'extern "C" __global__ void k(int* y, int n) { int a[100]; for (int i = 0; i < 100; i++) a[i] = y[i];'
        " y[0] = a[n % 100]; }",
        "k",
    )
    assert stack.resources["k"].stack_bytes >= 400
    spilling = (
        'extern "C" __global__ void k(const float* x, float* y) { float a[48];\n#pragma unroll\n'
        "for (int i = 0; i < 48; i++) a[i] = x[i * 32 + threadIdx.x];\n__syncthreads();\n#pragma unroll\n"
        "for (int i = 0; i < 48; i++) y[i * 32 + threadIdx.x] = a[47 - i] * a[i] + a[(i * 7) % 48]; }"
    )
    assert compiled(compiler, spilling, "k", max_registers=24).resources["k"].spill_store_bytes > 0
    assert compiled(compiler, spilling, "k").resources["k"].spill_store_bytes == 0


def test_options_reach_the_compiler(compiler: NvrtcCompiler) -> None:
    source = 'extern "C" __global__ void k(float* y) { y[0] = y[1] * y[2] + y[3]; y[4] = expf(y[5]) / y[6]; }'
    cubins = {
        compiled(compiler, source, "k").cubin,
        compiled(compiler, source, "k", fast_math=True).cubin,
        compiled(compiler, source, "k", fmad=False).cubin,
    }
    assert len(cubins) == 3


@pytest.mark.parametrize(
    "header",
    [
        "cuda_fp16.h",
        "cuda_bf16.h",
        "cuda_fp8.h",
        "mma.h",
        "cooperative_groups.h",
        "cuda/std/cstdint",
        "cuda/pipeline",
    ],
)
def test_headers_are_found(compiler: NvrtcCompiler, header: str) -> None:
    source = f'#include <{header}>\nextern "C" __global__ void k(float* y) {{ y[0] = 1.0f; }}'
    assert "k" in compiled(compiler, source, "k").resources


@pytest.mark.parametrize("header", ["", "#include <cuda/std/cstdint>\n", "#include <cooperative_groups.h>\n"])
def test_fixed_width_integers_and_limits_are_there_without_host_headers(
    compiler: NvrtcCompiler, header: str
) -> None:
    body = "{ y[0] = a ? INFINITY : FLT_MAX; if (b == INT_MAX && c == LLONG_MIN) y[1] = NAN * M_PI; }"
    source = f'{header}extern "C" __global__ void k(float* y, uint8_t a, int32_t b, int64_t c) {body}\n'
    compiled(compiler, source, "k")


def test_a_define_cannot_break_a_header(compiler: NvrtcCompiler) -> None:
    source = (
        '#include <cuda_fp16.h>\n#include <mma.h>\nextern "C" __global__ void k(int* y) { y[0] = x + __a; }'
    )
    compiled(compiler, source, "k", defines=(("x", "1"), ("__a", "2")))


def test_the_third_compile_with_the_same_headers_is_precompiled_and_the_same(compiler: NvrtcCompiler) -> None:
    source = (
        "// a comment\n#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n\n"
        'extern "C" __global__ void k(__half* y) { y[0] = __float2half(K); }\n'
    )
    results = [compiled(compiler, source, "k", defines=(("K", "1.5f"),)) for _ in range(3)]
    assert len({r.resources["k"] for r in results}) == 1
    broken = rejected(compiler, source.replace("y[0]", "z[0]"))
    again = compiler.compile(CompileRequest(source.replace("y[0]", "z[0]"), "sm_90a", (("K", "2"),)))
    assert isinstance(again, CompileRejected)
    assert broken.diagnostics[0].line == again.diagnostics[0].line == 5


def test_an_error_comes_with_line_message_excerpt_and_caret(compiler: NvrtcCompiler) -> None:
    source = (
        'extern "C" __global__ void k(float* y) {\n  int i = threadIdx.x;\n  y[i] = undefined_thing;\n}\n'
    )
    request = CompileRequest(source, "sm_80", (("A", "1"), ("B", "2")))
    result = compiler.compile(request)
    assert isinstance(result, CompileRejected) and result.reason == "source"
    (error,) = result.diagnostics
    assert (error.severity, error.line) == ("error", 3)
    assert error.message == 'identifier "undefined_thing" is undefined'
    lines = error.excerpt.splitlines()
    assert lines[1].endswith("y[i] = undefined_thing;")
    assert lines[2].index("^") == lines[1].index("undefined_thing")


def test_a_template_error_names_the_instantiation(compiler: NvrtcCompiler) -> None:
    source = (
        'template <int N> __device__ void f() {\n  static_assert(N < 3, "N is too big");\n}\n'
        'extern "C" __global__ void k(float* y) {\n  f<2>();\n  f<7>();\n}\n'
    )
    error = rejected(compiler, source).diagnostics[0]
    assert error.line == 2
    assert "N is too big" in error.message and "at line 6" in error.message


def test_an_error_inside_a_header_leads_to_the_line_that_caused_it(compiler: NvrtcCompiler) -> None:
    source = (
        "#include <cuda/std/type_traits>\n#include <cuda/std/array>\n"
        'extern "C" __global__ void k(int* y) {\n  cuda::std::array<int, 2> a{};\n  y[0] = cuda::std::get<5>(a);\n}\n'
    )
    errors = [d for d in rejected(compiler, source).diagnostics if d.severity == "error"]
    assert any(e.line == 5 for e in errors), errors


def test_ptxas_errors_lead_back_to_the_kernel(compiler: NvrtcCompiler) -> None:
    source = (
        "\n__device__ int unrelated(int k) { return k; }\n"
        'extern "C" __global__ void k(float* y) { __shared__ float s[60000]; s[threadIdx.x] = y[0];'
        " __syncthreads(); y[threadIdx.x] = s[threadIdx.x ^ 1]; }"
    )
    (error,) = rejected(compiler, source).diagnostics
    assert error.line == 3 and "too much shared data" in error.message
    asm = 'extern "C" __global__ void k(int* y) {\n  asm volatile("wgmma.fence.sync.aligned;");\n}'
    assert rejected(compiler, asm).diagnostics[0].line == 2
    unresolved = '__device__ int foo(int);\nextern "C" __global__ void k(int* y) { y[0] = foo(1); }'
    assert rejected(compiler, unresolved).diagnostics[0].line == 1


def test_warnings_are_kept_when_the_source_compiles(compiler: NvrtcCompiler) -> None:
    result = compiled(compiler, 'extern "C" __global__ void k(int* y) {\n  int unused;\n  y[0] = 1;\n}', "k")
    assert [(w.severity, w.line) for w in result.warnings] == [("warning", 2)]


def test_a_missing_entry_is_rejected_with_the_names_there_are(compiler: NvrtcCompiler) -> None:
    result = rejected(compiler, "__global__ void k(int* y) { y[0] = 1; }", "k")
    assert "_Z1kPi" in result.diagnostics[0].message and 'extern "C"' in result.diagnostics[0].message


SECRET_READS = [
    '#include "{path}"\n',
    "#include <{path}>\n",
    "#include <../../../../../../../../../../../../{path}>\n",
    "#define H <{path}>\n#include H\n",
    "#inc\\\nlude <{path}>\n",
    "/*\n*/ # /* */ include <{path}>\n",
    "%:include <{path}>\n",
    "#include_next <{path}>\n",
    'constexpr char c[] = {{\n#embed "{path}"\n}};\n',
    "#if __has_include(<{path}>)\n#error there\n#endif\n",
    '// \\ \n#include "{path}"\n',
    '// \\\r\n#include "{path}"\n',
    '// \r#include "{path}"\n',
    '#\vinclude "{path}"\n',
    '\f#include "{path}"\n',
    '// \\\n\n#include "{path}"\n',
    'const char* s = R"(\n// )"; \n#include "{path}"\n',
]


@pytest.mark.parametrize("attack", SECRET_READS)
def test_no_source_can_make_the_compiler_quote_a_file(
    compiler: NvrtcCompiler, tmp_path: Path, attack: str
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the_password_is_hunter2\n")
    source = attack.format(path=secret) + 'extern "C" __global__ void k() {}\n'
    result = rejected(compiler, source)
    assert "hunter2" not in repr(result) + result.log
    assert "refused before compiling" in result.diagnostics[0].message


def test_an_unknown_architecture_or_a_malformed_define_is_our_mistake(compiler: NvrtcCompiler) -> None:
    with pytest.raises(BadInput, match=r"'sm_12'.*sm_90a"):
        compiler.compile(CompileRequest(SCALE, "sm_12"))
    with pytest.raises(BadInput, match="cannot define"):
        compiler.compile(CompileRequest(SCALE, "sm_80", (("A", "1\n#include </etc/passwd>"),)))


def test_a_source_that_hangs_the_compiler_is_rejected_in_time_and_the_next_one_compiles(
    compiler: NvrtcCompiler,
) -> None:
    started = time.monotonic()
    result = compiler.compile(CompileRequest(ENDLESS, "sm_80"), timeout_s=1.0)
    assert time.monotonic() - started < 3.0
    assert isinstance(result, CompileRejected) and result.reason == "timeout"
    assert "1 s" in result.diagnostics[0].message
    compiled(compiler, SCALE, "scale", defines=(("FACTOR", "3.0f"),))


def test_a_source_that_eats_memory_fails_alone_and_its_process_is_replaced(tmp_path: Path) -> None:
    job = CompileJob(ENDLESS, "", "", "sm_80", (), fast_math=False, fmad=True, max_registers=None)
    with CompileWorker(tmp_path, memory_bytes=1300 << 20) as worker:
        result = worker.compile(job, 60.0)
        assert isinstance(result, RawCompile) and result.cubin is None
        assert "out of memory" in result.log
        assert worker._child is None
        fine = dataclasses.replace(job, plain='extern "C" __global__ void k() {}')
        again = worker.compile(fine, 60.0)
        assert isinstance(again, RawCompile) and again.cubin is not None


def test_a_killed_compile_process_is_a_crash_and_is_replaced(compiler: NvrtcCompiler) -> None:
    compiled(compiler, SCALE, "scale", defines=(("FACTOR", "4.0f"),))
    child = compiler._worker._child
    assert child is not None
    timer = threading.Timer(0.3, os.kill, (child.process.pid, signal.SIGKILL))
    timer.start()
    heavy = "#include <cub/block/block_reduce.cuh>\n#include <cooperative_groups/reduce.h>\n" + SCALE
    result = compiler.compile(CompileRequest(heavy, "sm_80", (("FACTOR", "5.0f"),)))
    timer.join()
    assert isinstance(result, CompileRejected) and result.reason == "crash"
    assert "SIGKILL" in result.diagnostics[0].message
    compiled(compiler, SCALE, "scale", defines=(("FACTOR", "6.0f"),))


def test_the_compile_process_sees_no_secrets_and_leaves_nothing_behind(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tools.nvrtc import *\n"
        "c = NvrtcCompiler(Path(sys.argv[1]))\n"
        "r = c.compile(CompileRequest(sys.argv[2], 'sm_80', (('FACTOR', '1.0f'),)))\n"
        "print(Path(f'/proc/{c._worker._child.process.pid}/environ').read_bytes().count(b'hunter2'))\n"
        "print(c._worker._child.process.pid)\n"
    )
    environ = {**os.environ, "OPENAI_API_KEY": "hunter2", "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", program, str(tmp_path), SCALE]
    output = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout.split()
    assert output[0] == "0"
    assert not Path(f"/proc/{output[1]}").exists()
    assert list((tmp_path / "scratch").iterdir()) == []


def test_threads_share_one_compiler(compiler: NvrtcCompiler) -> None:
    results: list[Compiled | CompileRejected] = []

    def work(number: int) -> None:
        results.append(
            compiler.compile(CompileRequest(SCALE, "sm_80", (("FACTOR", f"{number}.5f"),), ("scale",)))
        )

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and all(isinstance(r, Compiled) for r in results)
