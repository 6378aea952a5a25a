"""Every planted bug is found and located; its corrected twin is clean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tests.tools.simulator.bench import Bench, Value, floats, lines_with, zeros
from tools.simulator.report import FindingKind, RunStatus, Severity
from tools.simulator.runner import Mode


@dataclass(frozen=True)
class Planted:
    """A kernel k(in, out, n) over 64 floats with a bug between `bad` and its repair `good`, in place of @."""

    name: str
    kind: FindingKind
    body: str
    bad: str
    good: str
    block: int = 64
    shared_bytes: int = 0

    def source(self, part: str) -> str:
        return (
            'extern "C" __global__ void k(const float* in, float* out, int n) {\n  int t = threadIdx.x;\n'
            + self.body.replace("@", part)
            + "\n}\n"
        )


BUGS = [
    Planted(
        "missing barrier",
        FindingKind.RACE,
        "__shared__ float s[64];\n s[t] = in[t]; // BUG\n @\n out[t] = s[63 - t]; // BUG",
        "",
        "__syncthreads();",
    ),
    Planted(
        "missing barrier before reuse",
        FindingKind.RACE,
        "__shared__ float s[64];\n s[t] = in[t]; // BUG\n __syncthreads();\n float v = s[63 - t]; // BUG\n @\n"
        " s[t] = v; // BUG\n"
        " __syncthreads();\n out[t] = s[t];",
        "",
        "__syncthreads();",
    ),
    Planted(
        "missing syncwarp",
        FindingKind.RACE,
        "__shared__ float s[64];\n s[t] = in[t]; // BUG\n @\n out[t] = s[t ^ 1]; // BUG",
        "",
        "__syncwarp();",
    ),
    Planted(
        "missing barrier between loop rounds",
        FindingKind.RACE,
        "__shared__ float s[64];\n float a = 0;\n for (int i = 0; i < 3; i++) {\n s[t] = in[t] * i; // BUG\n"
        " __syncthreads();\n a += s[(t + 33) % 64]; // BUG\n @\n }\n out[t] = a;",
        "",
        "__syncthreads();",
    ),
    Planted("read past the end", FindingKind.OUT_OF_BOUNDS, "out[t] = in[@]; // BUG", "t + 1", "t"),
    Planted("read before the start", FindingKind.OUT_OF_BOUNDS, "out[t] = in[@]; // BUG", "t - 1", "t"),
    Planted("write past the end", FindingKind.OUT_OF_BOUNDS, "out[@] = in[t]; // BUG", "t + 3", "t"),
    Planted("write before the start", FindingKind.OUT_OF_BOUNDS, "out[@] = in[t]; // BUG", "t - 5", "t"),
    Planted("far write", FindingKind.OUT_OF_BOUNDS, "out[@] = in[t]; // BUG", "t + (1 << 28)", "t"),
    Planted(
        "vector read past the end",
        FindingKind.OUT_OF_BOUNDS,
        "float4 v = reinterpret_cast<const float4*>(in)[@]; // BUG\n out[t] = v.x + v.w;",
        "t",
        "t % 16",
    ),
    Planted(
        "misaligned vector",
        FindingKind.MISALIGNED,
        "float2 v = *reinterpret_cast<const float2*>(in + @); // BUG\n out[t] = v.x + v.y;",
        "1",
        "2",
    ),
    Planted(
        "static shared overrun",
        FindingKind.OUT_OF_BOUNDS,
        "__shared__ float s[64];\n s[@] = in[t]; // BUG\n __syncthreads();\n out[t] = s[t];",
        "t + 1",
        "t",
    ),
    Planted(
        "static shared overrun through a pointer",
        FindingKind.OUT_OF_BOUNDS,
        "__shared__ float s[62];\n float* p = s;\n p[@] = in[t]; // BUG\n __syncthreads();\n out[t] = s[t];",
        "t + 1",
        "t",
        block=62,
    ),
    Planted(
        "dynamic shared overrun",
        FindingKind.OUT_OF_BOUNDS,
        "extern __shared__ float s[];\n s[@] = in[t]; // BUG\n __syncthreads();\n out[t] = s[t];",
        "t + 1",
        "t",
        shared_bytes=256,
    ),
    Planted(
        "local array overrun",
        FindingKind.OUT_OF_BOUNDS,
        "float a[4];\n for (int i = 0; i < @; i++) a[i + n / 100] = in[t] * i; // BUG\n out[t] = a[n % 4];",
        "5",
        "4",
    ),
    Planted(
        "uninitialised shared",
        FindingKind.UNINITIALISED_SHARED,
        "__shared__ float s[64];\n if (@) s[t] = in[t];\n __syncthreads();\n out[t] = s[t]; // BUG",
        "t < 60",
        "t < 64",
    ),
    Planted(
        "divergent barrier",
        FindingKind.DIVERGENT_BARRIER,
        "if (@) { out[t] = 1; __syncthreads(); } // BUG\n else { out[t] = 2; __syncthreads(); } // BUG",
        "t % 2",
        "n > 0",
    ),
    Planted(
        "return before a barrier",
        FindingKind.DIVERGENT_BARRIER,
        "if (t >= @) return;\n __syncthreads(); // BUG\n out[t] = in[t];",
        "50",
        "n",
    ),
    Planted(
        "shuffle that some lanes never reach",
        FindingKind.SHUFFLE_FAULT,
        "float v = in[t];\n if (t % 32 < @) v += __shfl_down_sync(0xffffffffu, v, 1); // BUG\n __syncthreads();\n"
        " out[t] = v;",
        "16",
        "32",
    ),
    Planted(
        "shuffle from a lane outside the mask",
        FindingKind.SHUFFLE_FAULT,
        "float v = in[t];\n if (t % 32 < 16) v += __shfl_sync(0x0000ffffu, v, @); // BUG\n out[t] = v;",
        "20",
        "12",
    ),
    Planted(
        "shuffle by a lane outside the mask",
        FindingKind.SHUFFLE_FAULT,
        "float v = in[t];\n v += __shfl_xor_sync(@, v, 1); // BUG\n out[t] = v;",
        "0x0000ffffu",
        "0xffffffffu",
    ),
    Planted(
        "shuffle from a lane that returned",
        FindingKind.SHUFFLE_FAULT,
        "if (t % 32 >= @) return;\n float v = in[t];\n v += __shfl_down_sync(0xffffffffu, v, 1); // BUG\n out[t] = v;",
        "20",
        "32",
    ),
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda b: b.name)
def test_a_planted_bug_is_found_at_its_line(bench: Bench, bug: Planted) -> None:
    source = bug.source(bug.bad)
    values: dict[str, Value] = {"in": floats(64), "out": zeros(64), "n": 64}
    report = bench.run(source, values, block=bug.block, shared_bytes=bug.shared_bytes, mode=Mode.CHECK)
    assert report.status is RunStatus.FINDINGS, report
    kinds = {f.kind for f in report.findings if f.severity is Severity.ERROR}
    assert bug.kind in kinds, report
    found = next(f for f in report.findings if f.kind is bug.kind)
    assert found.line in lines_with(source), (found, source)
    assert found.kernel == "k"
    assert str(bug.kind) in report.message or len(kinds) > 1


@pytest.mark.parametrize("bug", BUGS, ids=lambda b: b.name)
def test_the_corrected_twin_is_clean(bench: Bench, bug: Planted) -> None:
    values: dict[str, Value] = {"in": floats(64), "out": zeros(64), "n": 64}
    report = bench.run(
        bug.source(bug.good), values, block=bug.block, shared_bytes=bug.shared_bytes, mode=Mode.CHECK
    )
    assert report.status is RunStatus.OK, report
    assert report.findings == ()


@pytest.mark.parametrize("index", [-1, -3, 64, 65, 101, -100000, 1 << 20])
@pytest.mark.parametrize("mode", [Mode.CHECK, Mode.PLAIN])
def test_an_overrun_names_buffer_and_element(bench: Bench, index: int, mode: Mode) -> None:
    source = 'extern "C" __global__ void k(float* data, int i) {\n  data[i] = 3.0f;\n}\n'
    report = bench.run(source, {"data": zeros(64), "i": index}, block=1, mode=mode)
    assert report.status is RunStatus.FINDINGS
    assert [(f.kind, f.buffer, f.index) for f in report.findings] == [
        (FindingKind.OUT_OF_BOUNDS, "data", index)
    ]
    inside_slack = mode is Mode.PLAIN and -1024 < index < 0
    assert report.findings[0].line == (None if inside_slack else 2)


def test_an_odd_sized_buffer_ends_exactly_where_it_ends(bench: Bench) -> None:
    source = 'extern "C" __global__ void k(unsigned char* data, int i) {\n  data[i] = 3;\n}\n'
    data = np.zeros(61, np.uint8)
    assert bench.run(source, {"data": data, "i": 60}, block=1, mode=Mode.CHECK).status is RunStatus.OK
    for mode in (Mode.CHECK, Mode.PLAIN):
        report = bench.run(source, {"data": data, "i": 61}, block=1, mode=mode)
        assert [(f.buffer, f.index) for f in report.findings] == [("data", 61)]


def test_a_write_to_a_read_only_buffer_is_named(bench: Bench) -> None:
    bench.read_only = frozenset(["data"])
    bench.arena.allocate("data", 64, writable=False)
    bench.arrays["data"] = bench.arena.view("data", np.dtype(np.float32), (16,))
    source = 'extern "C" __global__ void k(float* data) {\n  data[3] = 3.0f;\n}\n'
    for mode in (Mode.CHECK, Mode.PLAIN):
        report = bench.run(source, {"data": zeros(16)}, block=1, mode=mode)
        assert [(f.kind, f.buffer, f.index) for f in report.findings] == [
            (FindingKind.READ_ONLY_WRITE, "data", 3)
        ]


def test_shared_findings_name_the_variable(bench: Bench) -> None:
    source = (
        'extern "C" __global__ void k(float* out) {\n  __shared__ float tile[8][4];\n'
        "  out[threadIdx.x] = tile[1][threadIdx.x];\n}\n"
    )
    report = bench.run(source, {"out": zeros(4)}, block=4, mode=Mode.CHECK)
    assert [(f.kind, f.buffer, f.index, f.line) for f in report.findings] == [
        (FindingKind.UNINITIALISED_SHARED, "tile", 4, 3)
    ]


def test_barriers_of_different_warps_at_different_lines_are_a_warning(bench: Bench) -> None:
    source = (
        'extern "C" __global__ void k(float* out) {\n'
        "  if (threadIdx.x < 32) { out[threadIdx.x] = 1; __syncthreads(); }\n"
        "  else __syncthreads();\n}\n"
    )
    report = bench.run(source, {"out": zeros(64)}, block=64, mode=Mode.CHECK)
    assert report.status is RunStatus.OK
    assert [(f.kind, f.severity) for f in report.findings] == [
        (FindingKind.DIVERGENT_BARRIER, Severity.WARNING)
    ]


def test_half_words_of_one_word_do_not_race(bench: Bench) -> None:
    source = (
        'extern "C" __global__ void k(float* out) {\n  __shared__ half s[64];\n'
        "  s[threadIdx.x] = __float2half(threadIdx.x);\n"
        "  __syncthreads();\n  out[threadIdx.x] = __half2float(s[63 - threadIdx.x]);\n}\n"
    )
    report = bench.run(source, {"out": zeros(64)}, block=64, mode=Mode.CHECK)
    assert (report.status, report.findings) == (RunStatus.OK, ())
    assert np.array_equal(bench["out"], np.arange(63, -1, -1))


def test_a_failed_assertion_is_a_finding(bench: Bench) -> None:
    source = 'extern "C" __global__ void k(float* out) {\n  assert(threadIdx.x < 3);\n}\n'
    report = bench.run(source, {"out": zeros(4)}, block=4)
    assert [(f.kind, f.line, f.thread) for f in report.findings] == [(FindingKind.ASSERTION, 2, (3, 0, 0))]


def test_a_race_names_both_lines(bench: Bench) -> None:
    source = (
        'extern "C" __global__ void k(float* out) {\n  __shared__ float s[64];\n  s[threadIdx.x] = 1;\n'
        "  out[threadIdx.x] = s[(threadIdx.x + 63) % 64];\n}\n"
    )
    report = bench.run(source, {"out": zeros(64)}, block=64, mode=Mode.CHECK)
    races = [f for f in report.findings if f.kind is FindingKind.RACE]
    assert any(f.line == 4 and "the other access is at line 3" in f.message for f in races), races
