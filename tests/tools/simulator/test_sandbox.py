"""Whatever a kernel does, only its own run ends, and the report says how.

The compiler already refuses most of these sources by their symbols; `check_symbols=False` lets them through, so
that the sandbox itself is what is tested.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.simulator.bench import Bench, zeros
from tools.simulator.arena import Arena
from tools.simulator.compiler import HostCompileError, HostCompiler
from tools.simulator.report import FindingKind, RunStatus, SimReport
from tools.simulator.runner import Mode

HEAD = 'extern "C" __global__ void k(float* out) {\n'


@pytest.fixture
def unchecked(cache_dir: Path) -> Iterator[Bench]:
    with Arena() as arena:
        yield Bench(HostCompiler(cache_dir, check_symbols=False), arena, timeout_s=1.0)


def run(bench: Bench, declarations: str, body: str, mode: Mode = Mode.PLAIN) -> SimReport:
    return bench.run(f"{declarations}\n{HEAD}{body}\n}}\n", {"out": zeros(16)}, block=1, mode=mode)


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.CHECK])
@pytest.mark.parametrize(
    "body",
    ["for (volatile int i = 0;; i = i + 1) {}", "for (int i = 0;; i++) out[i % 16] += 1;", "while (true) {}"],
)
def test_an_infinite_loop_times_out_with_its_line(unchecked: Bench, body: str, mode: Mode) -> None:
    started = time.monotonic()
    report = run(unchecked, "", body, mode)
    assert report.status is RunStatus.TIMED_OUT
    assert time.monotonic() - started < 4
    if body != "while (true) {}":
        assert "line 3" in report.message


def test_a_wild_pointer_is_located(bench: Bench) -> None:
    report = run(bench, "", "*(volatile float*)0x123456789000 = 1;")
    assert report.status is RunStatus.CRASHED
    assert "line 3" in report.message and "signal 11" in report.message
    report = run(bench, "", "*(volatile float*)0x123456789000 = 1;", Mode.CHECK)
    assert report.findings[0].kind is FindingKind.OUT_OF_BOUNDS
    assert report.findings[0].line == 3


def test_a_stack_overflow_is_told_apart(bench: Bench) -> None:
    code = """__device__ __noinline__ float f(int n, volatile float* p) {
  volatile float a[256];
  a[n % 256] = p[0];
  return n ? f(n - 1, a) + a[3] : 0;
}"""
    report = run(bench, code, "out[0] = f(1 << 30, out);")
    assert report.status is RunStatus.CRASHED
    assert "stack overflow" in report.message


def test_division_by_zero_is_a_crash_not_ours(bench: Bench) -> None:
    report = run(bench, "", "int zero = (int)out[0]; out[1] = 5 / zero;")
    assert report.status is RunStatus.CRASHED
    assert "signal 8" in report.message


@pytest.mark.parametrize(
    "body",
    [
        "char* p = (char*)malloc(100ull << 30); p[5] = 1; out[0] = p[5];",
        "for (;;) { volatile char* p = (char*)malloc(1 << 28); for (int j = 0; j < 1 << 28; j += 65536) p[j] = 1; }",
        "char* p = (char*)mmap(nullptr, 100ull << 30, 3, 0x22, -1, 0); p[5] = 1;",
    ],
)
def test_taking_all_memory_is_refused(unchecked: Bench, body: str) -> None:
    unchecked.timeout_s = 10
    code = 'extern "C" void* malloc(size_t); extern "C" void* mmap(void*, size_t, int, int, int, long);'
    report = run(unchecked, code, body)
    assert report.status is RunStatus.OUT_OF_MEMORY, report


def test_a_huge_device_array_is_refused(unchecked: Bench) -> None:
    report = run(
        unchecked, "__device__ char big[100ull << 30];", "big[threadIdx.x << 20] = 1; out[0] = big[7];"
    )
    assert report.status in (RunStatus.OUT_OF_MEMORY, RunStatus.BAD_LAUNCH), report


FORBIDDEN = {
    "starting a shell": ("int system(const char*);", 'out[0] = system("touch {path}");'),
    "forking": ("int fork();", "for (;;) fork();"),
    "executing": (
        "int execve(const char*, char* const*, char* const*);",
        'execve("/bin/true", nullptr, nullptr);',
    ),
    "opening to write": ("int open(const char*, int, ...);", 'out[0] = open("{path}", 0x41, 0644);'),
    "reading the passwords": ("int open(const char*, int, ...);", 'out[0] = open("/etc/passwd", 0);'),
    "opening a socket": ("int socket(int, int, int);", "out[0] = socket(2, 1, 0);"),
    "killing the parent": ("int kill(int, int); int getppid();", "kill(getppid(), 9);"),
    "signalling everybody": ("int kill(int, int);", "kill(-1, 9);"),
    "tracing": ("long ptrace(int, ...);", "ptrace(16, 1, 0, 0);"),
    "starting a thread": (
        "int pthread_create(unsigned long*, const void*, void* (*)(void*), void*);",
        "unsigned long t; pthread_create(&t, nullptr, [](void* p) { return p; }, nullptr);",
    ),
    "writing to a descriptor": (
        "long write(int, const void*, unsigned long);",
        'for (int f = 0; f < 64; f++) write(f, "x", 1);',
    ),
    "raw system call": ("long syscall(long, ...);", "syscall(57);"),
    "deleting": ("int unlink(const char*);", 'unlink("{path}");'),
    "raising limits": (
        "int setrlimit(int, const void*);",
        "unsigned long r[2] = {{~0ul, ~0ul}}; setrlimit(9, r);",
    ),
    "executable memory": (
        "void* mmap(void*, size_t, int, int, int, long);",
        "out[0] = mmap(nullptr, 4096, 7, 0x22, -1, 0) != nullptr;",
    ),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_forbidden_call_ends_the_run_alone(unchecked: Bench, tmp_path: Path, name: str) -> None:
    declaration, body = FORBIDDEN[name]
    path = tmp_path / "touched"
    body = body.replace("{path}", str(path)).replace("{{", "{").replace("}}", "}")
    report = run(unchecked, f'extern "C" {{ {declaration} }}', body)
    assert report.status in (RunStatus.CRASHED, RunStatus.OUT_OF_MEMORY), report
    assert not path.exists()


@pytest.mark.parametrize("name", FORBIDDEN)
def test_the_compiler_refuses_it_first(compiler: HostCompiler, name: str) -> None:
    declaration, body = FORBIDDEN[name]
    source = f'extern "C" {{ {declaration} }}\n{HEAD}{body.replace("{{", "{").replace("}}", "}")}\n}}\n'
    with pytest.raises(HostCompileError, match="not available in device code"):
        compiler.compile(source, {}, ["k"], instrumented=False)


@pytest.mark.parametrize("call", ["exit(0)", "_exit(0)", "_Exit(0)"])
def test_leaving_early_is_no_success(unchecked: Bench, call: str) -> None:
    report = run(unchecked, 'extern "C" { void exit(int); void _exit(int); void _Exit(int); }', f"{call};")
    assert report.status is RunStatus.CRASHED


def test_a_constructor_is_refused(compiler: HostCompiler, unchecked: Bench) -> None:
    code = "__attribute__((constructor)) void early() { volatile int x = 0; while (true) x = x + 1; }"
    with pytest.raises(HostCompileError, match="constructors"):
        compiler.compile(f"{code}\n{HEAD}}}\n", {}, ["k"], instrumented=False)
    assert run(unchecked, code, "").status is RunStatus.TIMED_OUT


def test_printed_text_is_kept_short(bench: Bench) -> None:
    report = run(bench, "", 'for (int i = 0; i < 100000; i++) printf("line %d\\n", i);')
    assert report.status is RunStatus.OK
    assert report.printed.startswith("line 0 line 1")
    assert len(report.printed) <= 16384


def test_no_process_and_no_shared_memory_is_left(unchecked: Bench) -> None:
    before = set(Path("/dev/shm").iterdir())
    run(unchecked, "", "while (true) {}")
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    runner = str(unchecked.compiler.compile(HEAD + "}", {}, ["k"], instrumented=False).runner)
    assert runner not in listing
    assert set(Path("/dev/shm").iterdir()) <= before
