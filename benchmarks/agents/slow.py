"""Situations that are timed: they pass and are slow, and the numbers must say why; or are too fast to be true."""

from __future__ import annotations

from agents.endpoint import Role
from benchmarks.agents import kernels, problems
from benchmarks.agents.kernels import replaced
from benchmarks.agents.scaled_relu import scaled_relu_program, scaled_relu_step
from benchmarks.agents.situation import SLOW, Fact, Situation
from memory.records import Buffer, DType, Program, Status

_DETAIL = (Role.PROFILER, Role.CODER)
_EVERYONE = (
    Fact("time and gain", r"[\d.]+ µs \(modelled\), [\d.]+x eager", SLOW),
    Fact("share of the floor", r"\d+% of the floor", SLOW),
)


def _bound(by: str) -> Fact:
    return Fact("bottleneck", rf"{by}-bound", SLOW)


TWO_KERNELS = """
extern "C" __global__ void scale(const float* x, const float* weight, float* t) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < ROWS * COLS) t[i] = x[i] * weight[i % COLS];
}
extern "C" __global__ void rectify(const float* t, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < ROWS * COLS) y[i] = t[i] < 0.0f ? 0.0f : t[i];
}
"""


def _two_kernels() -> Program:
    buffers = tuple(Buffer(name=name, shape=("ROWS", "COLS"), dtype=DType.F32) for name in ("t", "y"))
    steps = (
        scaled_relu_step(entry="scale", args=("x", "weight", "t")),
        scaled_relu_step(entry="rectify", args=("t", "y")),
    )
    return scaled_relu_program(TWO_KERNELS, buffers=buffers, steps=steps)


SITUATIONS = (
    Situation(
        "uncoalesced_loads",
        "A thread a row: neighbouring threads read a row's length apart.",
        problems.row_mean(16384, 1024),
        kernels.mean_by_thread(),
        Status.PASSED,
        "uncoalesced",
        (
            *_EVERYONE,
            _bound("memory"),
            Fact("sectors a request", r"load_sectors_per_request 32\b", _DETAIL),
            Fact("how many are ideal", r"4 are ideal", _DETAIL),
            Fact("line and tensor", r"uncoalesced \(line 6\).{0,80}`x`", _DETAIL),
            Fact("in short", r"32\.0 sectors per load request", (Role.PLANNER,)),
        ),
        twin=problems.row_mean(),
    ),
    Situation(
        "uncoalesced_stores",
        "A transpose that reads along rows and writes along columns.",
        problems.transpose(4096, 4096),
        kernels.transpose(kernels.TRANSPOSE_DIRECT),
        Status.PASSED,
        "uncoalesced",
        (
            *_EVERYONE,
            _bound("memory"),
            Fact("sectors a request", r"store_sectors_per_request 32\b", _DETAIL),
            Fact("line and tensor", r"uncoalesced \(line 4\).{0,80}`y`", _DETAIL),
            Fact("in short", r"32\.0 per store request", (Role.PLANNER,)),
        ),
        twin=problems.transpose(),
    ),
    Situation(
        "bank_conflicts",
        "A tile of 32 by 32 without padding is read along columns.",
        problems.transpose(4096, 4096),
        kernels.transpose(replaced(kernels.TRANSPOSE, "tile[32][33]", "tile[32][32]")),
        Status.PASSED,
        None,
        (
            *_EVERYONE,
            Fact("conflicts", r"bank_conflicts 16,252,928", _DETAIL),
            Fact("what would be ideal", r"16,252,928 \([^)]*0 is ideal", _DETAIL),
            Fact("shared memory", r"shared_bytes 4,?096", _DETAIL),
            Fact("in short", r"16,252,928 bank conflicts", (Role.PLANNER,)),
        ),
        twin=problems.transpose(),
    ),
    Situation(
        "low_occupancy",
        "A block of two warps holds 128 KiB of shared memory, so that an SM has one block.",
        problems.row_mean(16384, 1024),
        kernels.mean(
            replaced(
                kernels.MEAN_BY_BLOCK, "__shared__ float partial[BLOCK]", "extern __shared__ float partial[]"
            ),
            shared_bytes="BLOCK * 2048",
        ),
        Status.PASSED,
        None,
        (
            *_EVERYONE,
            _bound("occupancy"),
            Fact("occupancy", r"occupancy 0\.031|occupancy 3%", SLOW),
            Fact("shared memory", r"shared_bytes 131,?072", _DETAIL),
            Fact("registers", r"registers \d+", _DETAIL),
        ),
        twin=problems.row_mean(),
    ),
    Situation(
        "two_launches",
        "Two kernels where one would do, on a problem so small that launches decide.",
        problems.scaled_relu(),
        _two_kernels(),
        Status.PASSED,
        None,
        (
            *_EVERYONE,
            _bound("launch"),
            Fact("both kernels", r"scale \(modelled\).*rectify \(modelled\)", _DETAIL),
            Fact("limited by", r"limited by launch", SLOW),
            Fact("how many", r"2 steps", (Role.PLANNER,)),
        ),
    ),
)

SUSPECTED = (
    Situation(
        "work_left_out",
        "Only the first 96 columns are summed, which are all that trials have.",
        problems.row_mean(16384, 1024),
        kernels.mean_by_warp(replaced(kernels.MEAN_BY_WARP, "col < COLS;", "col < min(COLS, 96);")),
        Status.SUSPICIOUS,
        "below_floor",
        (),
        twin=problems.row_mean(),
    ),
)
"""Judged as part of a generation."""
