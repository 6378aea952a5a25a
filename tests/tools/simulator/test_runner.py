"""Launches, arenas and reports: the Python side."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tests.tools.simulator.bench import Bench, zeros
from tools.simulator.arena import Arena
from tools.simulator.compiler import HostCompiler
from tools.simulator.launch import BufferArg, KernelArg, Launch, ScalarArg
from tools.simulator.report import RunStatus, SimReport
from tools.simulator.runner import Mode, Simulator

SCALE = """extern "C" __global__ void k(float* data, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = data[i] * factor + 1;
}
"""
F32 = np.dtype(np.float32)


def launch(
    *args: KernelArg, entry: str = "k", grid: int = 1, block: int = 32, shared_bytes: int = 0
) -> Launch:
    return Launch(entry, (grid, 1, 1), (block, 1, 1), shared_bytes, args)


def run(compiler: HostCompiler, *launches: Launch, workers: int = 1) -> SimReport:
    library = compiler.compile(SCALE, {}, ["k"], instrumented=False)
    with Arena() as arena:
        arena.allocate("data", 128)
        return Simulator(compiler, workers=workers).run(library, launches, arena, mode=Mode.PLAIN)


GOOD = (BufferArg("data"), ScalarArg("float", 2.0), ScalarArg("int", 32))


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (launch(*GOOD, entry="absent"), "no such kernel"),
        (launch(BufferArg("absent"), *GOOD[1:]), "no buffer 'absent'"),
        (launch(*GOOD[:2]), "takes 3 arguments, the launch passes 2"),
        (launch(GOOD[0], ScalarArg("double", 2.0), GOOD[2]), "takes 4 bytes, the launch passes 8"),
        (launch(ScalarArg("int", 3), *GOOD[1:]), "takes a pointer"),
        (launch(GOOD[0], GOOD[0], GOOD[2]), "takes a scalar"),
        (launch(*GOOD, block=1025), "1024 threads"),
        (launch(*GOOD, block=0), "must be between"),
        (launch(*GOOD, shared_bytes=300 << 10), "256 KB"),
        (Launch("k", (1, 70000, 1), (32, 1, 1), 0, GOOD), "outside CUDA's limits"),
        (launch(GOOD[0], GOOD[1], ScalarArg("int", 1 << 40)), "does not fit int"),
    ],
)
def test_a_bad_launch_is_a_status_that_says_why(compiler: HostCompiler, bad: Launch, says: str) -> None:
    report = run(compiler, bad)
    assert report.status is RunStatus.BAD_LAUNCH
    assert says in report.message


def test_launches_run_in_order_in_one_process(compiler: HostCompiler) -> None:
    library = compiler.compile(SCALE, {}, ["k"], instrumented=False)
    for workers in (1, 3):
        with Arena() as arena:
            arena.allocate("data", 4 * 1000)
            steps = [
                launch(BufferArg("data"), ScalarArg("float", f), ScalarArg("int", 1000), grid=8, block=128)
                for f in (1.0, 2.0, 3.0)
            ]
            report = Simulator(compiler, workers=workers).run(library, steps, arena, mode=Mode.PLAIN)
            assert report.status is RunStatus.OK, report
            assert np.array_equal(arena.view("data", F32, (1000,)), np.full(1000, 10.0))


def test_scalars_of_every_type_arrive(bench: Bench) -> None:
    source = (
        'extern "C" __global__ void k(double* o, bool a, char b, unsigned char c, short d, unsigned e, long long f, '
        "unsigned long long g, double h, half i, __nv_bfloat16 j, size_t l) {\n"
        "  double v[] = {(double)a, (double)b, (double)c, (double)d, (double)e, (double)f, (double)g, h,"
        " (double)(float)i,"
        " (double)(float)j, (double)l};\n  for (int n = 0; n < 11; n++) o[n] = v[n];\n}\n"
    )
    library = bench.compiler.compile(source, {}, ["k"], instrumented=False)
    scalars = (
        ScalarArg("bool", True), ScalarArg("char", -5), ScalarArg("unsigned char", 200), ScalarArg("short", -300),
        ScalarArg("unsigned", 4000000000), ScalarArg("long long", -(1 << 40)),
        ScalarArg("unsigned long long", (1 << 63) + 2048), ScalarArg("double", 1 / 3), ScalarArg("half", 1.5),
        ScalarArg("bfloat16", 2.5), ScalarArg("size_t", 1 << 40),
    )  # fmt: skip
    bench.arena.allocate("o", 88)
    steps = [launch(BufferArg("o"), *scalars, block=1)]
    report = Simulator(bench.compiler).run(library, steps, bench.arena, mode=Mode.PLAIN)
    assert report.status is RunStatus.OK, report
    got = bench.arena.view("o", np.dtype(np.float64), (11,))
    assert got.tolist() == [float(s.value) for s in scalars]


def test_a_mode_that_does_not_fit_the_library_is_our_mistake(compiler: HostCompiler) -> None:
    library = compiler.compile(SCALE, {}, ["k"], instrumented=False)
    with Arena() as arena, pytest.raises(ValueError, match="do not fit"):
        Simulator(compiler).run(library, [], arena, mode=Mode.CHECK)


def test_runs_from_several_threads_do_not_disturb_each_other(compiler: HostCompiler) -> None:
    reports: list[SimReport] = []

    def work() -> None:
        reports.append(run(compiler, launch(*GOOD)))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [r.status for r in reports] == [RunStatus.OK] * 6


def test_a_run_costs_little_beyond_its_work(compiler: HostCompiler) -> None:
    times = [run(compiler, launch(*GOOD)).wall_s for _ in range(10)]
    assert sorted(times)[2] < 0.015


def test_workers_see_one_device_variable(bench: Bench) -> None:
    source = "__device__ int total;\n"
    source += 'extern "C" __global__ void k(float* out) {\n  out[blockIdx.x] = atomicAdd(&total, 1);\n}\n'
    bench.workers = 3
    assert bench.run(source, {"out": zeros(64)}, grid=64, block=1).status is RunStatus.OK
    assert sorted(bench["out"].tolist()) == list(range(64))


def test_arena_views_share_memory_and_keep_to_their_buffer() -> None:
    with Arena() as arena:
        arena.allocate("a", 100)
        first = arena.view("a", F32, (25,))
        first[3] = 7
        assert arena.view("a", F32, (5, 5))[0, 3] == 7
        with pytest.raises(ValueError, match="needs 104 bytes"):
            arena.view("a", F32, (26,))
        with pytest.raises(ValueError, match="exists already"):
            arena.allocate("a", 4)
        with pytest.raises(ValueError, match="no buffer 'b'"):
            arena.view("b", F32, (1,))
        arena.allocate("empty", 0)
        assert arena.view("empty", F32, (0,)).shape == (0,)


def test_a_closed_arena_says_so() -> None:
    arena = Arena()
    arena.close()
    arena.close()
    with pytest.raises(ValueError, match="closed"):
        arena.allocate("a", 4)
