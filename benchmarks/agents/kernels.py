"""Right programs, one for each problem and way; every situation is one of them with one flaw put in."""

from __future__ import annotations

from benchmarks.agents.scaled_relu import scaled_relu_program, scaled_relu_step
from memory.records import Buffer, DType, KernelStep, Program, Tunable

RELU_BY_WARPS = """
extern "C" __global__ void scaled_relu(const float* x, const float* weight, float* y) {
  const int lane = threadIdx.x, warp = threadIdx.y;
  const int row = blockIdx.x * WARPS + warp;
  if (row >= ROWS) return;
  for (int col = lane; col < COLS; col += 32) {
    const float v = x[row * COLS + col] * weight[col];
    y[row * COLS + col] = v < 0.0f ? 0.0f : v;
  }
}
"""

MEAN_BY_BLOCK = """
extern "C" __global__ void row_mean(const float* x, float* y) {
  __shared__ float partial[BLOCK];
  float sum = 0.0f;
  for (int col = threadIdx.x; col < COLS; col += BLOCK) sum += x[blockIdx.x * COLS + col];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = partial[0] / COLS;
}
"""

MEAN_BY_WARP = """
extern "C" __global__ void row_mean(const float* x, float* y) {
  float sum = 0.0f;
  for (int col = threadIdx.x; col < COLS; col += 32) sum += x[blockIdx.x * COLS + col];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (threadIdx.x == 0) y[blockIdx.x] = sum / COLS;
}
"""

MEAN_BY_THREAD = """
extern "C" __global__ void row_mean(const float* x, float* y) {
  const int row = blockIdx.x * BLOCK + threadIdx.x;
  if (row >= ROWS) return;
  float sum = 0.0f;
  for (int col = 0; col < COLS; ++col) sum += x[(long long)row * COLS + col];
  y[row] = sum / COLS;
}
"""

SOFTMAX = """
extern "C" __global__ void softmax(const float* x, float* y) {
  const float* row = x + blockIdx.x * COLS;
  float top = -INFINITY;
  for (int col = threadIdx.x; col < COLS; col += 32) {
    const float v = row[col];
    top = v > top || v != v ? v : top;
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, top, offset);
    top = other > top || other != other ? other : top;
  }
  float sum = 0.0f;
  for (int col = threadIdx.x; col < COLS; col += 32) sum += expf(row[col] - top);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  for (int col = threadIdx.x; col < COLS; col += 32) {
    y[blockIdx.x * COLS + col] = expf(row[col] - top) / sum;
  }
}
"""

TRANSPOSE = """
extern "C" __global__ void transpose(const float* x, float* y) {
  __shared__ float tile[32][33];
  int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  if (row < ROWS && col < COLS) tile[threadIdx.y][threadIdx.x] = x[(long long)row * COLS + col];
  __syncthreads();
  col = blockIdx.y * 32 + threadIdx.x;
  row = blockIdx.x * 32 + threadIdx.y;
  if (row < COLS && col < ROWS) y[(long long)row * ROWS + col] = tile[threadIdx.x][threadIdx.y];
}
"""

TRANSPOSE_DIRECT = """
extern "C" __global__ void transpose(const float* x, float* y) {
  const int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  if (row < ROWS && col < COLS) y[(long long)col * ROWS + row] = x[(long long)row * COLS + col];
}
"""

HALF_SUM = """#include <cuda_fp16.h>

extern "C" __global__ void half_sum(const __half* x, __half* y) {
  float sum = 0.0f;
  for (int col = threadIdx.x; col < COLS; col += 32) sum += __half2float(x[blockIdx.x * COLS + col]);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (threadIdx.x == 0) y[blockIdx.x] = __float2half(sum);
}
"""

_DIMS = {"ROWS": "x.shape[0]", "COLS": "x.shape[1]"}
_BLOCK = Tunable(name="BLOCK", value=64, choices=(64, 128, 256))


def relu_by_warps(source: str = RELU_BY_WARPS) -> Program:
    """A warp a row, `WARPS` rows a block."""
    step = scaled_relu_step(grid=("ceil_div(ROWS, WARPS)", "1", "1"), block=("32", "WARPS", "1"))
    tunables = (Tunable(name="WARPS", value=32, choices=(4, 8, 32)),)
    return scaled_relu_program(source, steps=(step,), tunables=tunables)


def mean(source: str = MEAN_BY_BLOCK, *, shared_bytes: str = "0") -> Program:
    """A block a row."""
    return _reduction(source, "row_mean", ("ROWS", "BLOCK"), DType.F32, shared_bytes)


def mean_by_warp(source: str = MEAN_BY_WARP) -> Program:
    """A warp a row."""
    return _reduction(source, "row_mean", ("ROWS", "32"), DType.F32)


def mean_by_thread(source: str = MEAN_BY_THREAD) -> Program:
    """A thread a row."""
    return _reduction(source, "row_mean", ("ceil_div(ROWS, BLOCK)", "BLOCK"), DType.F32)


def half_sum(source: str = HALF_SUM) -> Program:
    """A warp a row, accumulated in float32."""
    return _reduction(source, "half_sum", ("ROWS", "32"), DType.F16)


def softmax(source: str = SOFTMAX) -> Program:
    """A warp a row, three passes."""
    buffer = Buffer(name="y", shape=("ROWS", "COLS"), dtype=DType.F32)
    step = KernelStep(entry="softmax", grid=("ROWS", "1", "1"), block=("32", "1", "1"), args=("x", "y"))
    return Program(source=source, dims=_DIMS, buffers=(buffer,), steps=(step,), outputs=("y",))


def transpose(source: str = TRANSPOSE) -> Program:
    """Tiles of 32 by 32."""
    buffer = Buffer(name="y", shape=("COLS", "ROWS"), dtype=DType.F32)
    grid = ("ceil_div(COLS, 32)", "ceil_div(ROWS, 32)", "1")
    step = KernelStep(entry="transpose", grid=grid, block=("32", "32", "1"), args=("x", "y"))
    return Program(source=source, dims=_DIMS, buffers=(buffer,), steps=(step,), outputs=("y",))


def _reduction(
    source: str, entry: str, launch: tuple[str, str], dtype: DType, shared_bytes: str = "0"
) -> Program:
    grid, block = launch
    step = KernelStep(
        entry=entry,
        grid=(grid, "1", "1"),
        block=(block, "1", "1"),
        shared_bytes=shared_bytes,
        args=("x", "y"),
    )
    return Program(
        source=source,
        dims=_DIMS,
        tunables=(_BLOCK,) if "BLOCK" in source + block else (),
        buffers=(Buffer(name="y", shape=("ROWS",), dtype=dtype),),
        steps=(step,),
        outputs=("y",),
    )


def replaced(source: str, old: str, new: str) -> str:
    """The source with its one flaw. Raises ValueError where what is to be changed does not stand in it once."""
    if source.count(old) != 1:
        raise ValueError(f"{old!r} stands {source.count(old)} times in the kernel, not once")
    return source.replace(old, new)
