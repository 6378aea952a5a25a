"""Whole kernels of the kind a good author writes: they compile, and lint has nothing to say about them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tools.lint import lint
from tools.nvrtc import Compiled, CompileRequest, NvrtcCompiler

KERNELS: dict[str, str] = {
    "softmax": """
__device__ __forceinline__ float warp_max(float v) {
  #pragma unroll
  for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
  return v;
}
__device__ __forceinline__ float warp_sum(float v) {
  #pragma unroll
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}
extern "C" __global__ void __launch_bounds__(256) softmax(const float* __restrict__ x,
    float* __restrict__ y, int cols) {
  __shared__ float parts[8];
  __shared__ float total;
  const long long row = blockIdx.x;
  const float* in = x + row * cols;
  float* out = y + row * cols;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float best = -INFINITY;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) best = fmaxf(best, in[c]);
  best = warp_max(best);
  if (lane == 0) parts[warp] = best;
  __syncthreads();
  best = parts[0];
  for (int w = 1; w < 8; ++w) best = fmaxf(best, parts[w]);
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += __expf(in[c] - best);
  sum = warp_sum(sum);
  __syncthreads();
  if (lane == 0) parts[warp] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float all = 0.0f;
    for (int w = 0; w < 8; ++w) all += parts[w];
    total = all;
  }
  __syncthreads();
  for (int c = threadIdx.x; c < cols; c += blockDim.x) out[c] = __expf(in[c] - best) / total;
}
""",
    "matmul": """
#define TILE 32
extern "C" __global__ void matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                                  int m, int n, int k) {
  __shared__ float left[TILE][TILE + 1], right[TILE][TILE + 1];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
  float acc = 0.0f;
  for (int t = 0; t < k; t += TILE) {
    left[ty][tx] = row < m && t + tx < k ? a[row * k + t + tx] : 0.0f;
    right[ty][tx] = col < n && t + ty < k ? b[(t + ty) * n + col] : 0.0f;
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < TILE; ++i) acc = fmaf(left[ty][i], right[i][tx], acc);
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = acc;
}
""",
    "wmma": """
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void wmma_tile(const __half* __restrict__ a, const __half* __restrict__ b, float* c,
    int n, int k) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  const int row = blockIdx.y * 16, col = blockIdx.x * 16;
  for (int i = 0; i < k; i += 16) {
    wmma::load_matrix_sync(fa, a + row * k + i, k);
    wmma::load_matrix_sync(fb, b + col * k + i, k);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  wmma::store_matrix_sync(c + row * n + col, fc, n, wmma::mem_row_major);
}
""",
    "vectorised": """
struct Silu { __device__ __forceinline__ float operator()(float v) const { return v / (1.0f + __expf(-v)); } };
struct Gelu {
  __device__ __forceinline__ float operator()(float v) const { return 0.5f * v * (1.0f + erff(v * 0.70710678f)); }
};
template <typename Op> __device__ __forceinline__ void apply(const float4* x, float4* y, long long n4, Op op) {
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += (long long)gridDim.x * blockDim.x) {
    float4 v = x[i];
    v.x = op(v.x); v.y = op(v.y); v.z = op(v.z); v.w = op(v.w);
    y[i] = v;
  }
}
extern "C" __global__ void silu4(const float4* __restrict__ x, float4* __restrict__ y, long long n4) {
  apply(x, y, n4, Silu{});
}
extern "C" __global__ void gelu4(const float4* __restrict__ x, float4* __restrict__ y, long long n4) {
  apply(x, y, n4, Gelu());
}
""",
    "transpose": """
extern "C" __global__ void transpose(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
  __shared__ float tile[32][33];
  int col = blockIdx.x * 32 + threadIdx.x;
  int row = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (row + j < rows && col < cols) tile[threadIdx.y + j][threadIdx.x] = x[(size_t)(row + j) * cols + col];
  __syncthreads();
  col = blockIdx.y * 32 + threadIdx.x;
  row = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (row + j < cols && col < rows) y[(size_t)(row + j) * rows + col] = tile[threadIdx.x][threadIdx.y + j];
}
""",
    "layernorm": """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void layernorm(const float* __restrict__ x, const float* __restrict__ gamma, float* y,
    int cols, float eps) {
  extern __shared__ float row_cache[];
  __shared__ float2 stats[32];
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  const float* in = x + (long long)blockIdx.x * cols;
  float sum = 0.0f, squares = 0.0f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    const float v = in[c];
    row_cache[c] = v;
    sum += v;
    squares += v * v;
  }
  sum = cg::reduce(warp, sum, cg::plus<float>());
  squares = cg::reduce(warp, squares, cg::plus<float>());
  if (warp.thread_rank() == 0) stats[warp.meta_group_rank()] = make_float2(sum, squares);
  block.sync();
  sum = squares = 0.0f;
  for (int w = 0; w < warp.meta_group_size(); ++w) { sum += stats[w].x; squares += stats[w].y; }
  const float mean = sum / cols, scale = rsqrtf(squares / cols - mean * mean + eps);
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    y[(long long)blockIdx.x * cols + c] = (row_cache[c] - mean) * scale * gamma[c];
}
""",
    "histogram": """
extern "C" __global__ void histogram(const unsigned char* __restrict__ x, int* __restrict__ bins, int n) {
  __shared__ int local[256];
  for (int b = threadIdx.x; b < 256; b += blockDim.x) local[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[x[i]], 1);
  __syncthreads();
  for (int b = threadIdx.x; b < 256; b += blockDim.x) atomicAdd(&bins[b], local[b]);
}
""",
    "double_buffer": """
#include <cuda_pipeline.h>
extern "C" __global__ void staged(const float4* __restrict__ x, float* __restrict__ y, int tiles) {
  __shared__ alignas(16) float4 stage[2][128];
  float acc = 0.0f;
  __pipeline_memcpy_async(&stage[0][threadIdx.x], &x[threadIdx.x], sizeof(float4));
  __pipeline_commit();
  for (int t = 0; t < tiles; ++t) {
    if (t + 1 < tiles) __pipeline_memcpy_async(&stage[(t + 1) & 1][threadIdx.x], &x[(t + 1) * 128 + threadIdx.x], 16);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    const float4 v = stage[t & 1][127 - threadIdx.x];
    acc += v.x + v.y + v.z + v.w;
    __syncthreads();
  }
  y[blockIdx.x * 128 + threadIdx.x] = acc;
}
""",
}


@pytest.fixture(scope="module")
def compiler() -> Iterator[NvrtcCompiler]:
    with NvrtcCompiler(None) as made:
        yield made


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_an_honest_kernel_compiles_and_passes_lint(compiler: NvrtcCompiler, name: str) -> None:
    source = KERNELS[name]
    result = compiler.compile(CompileRequest(source, "sm_90a"))
    assert isinstance(result, Compiled), result
    entries = tuple(result.resources)
    assert lint(source, entries) == ()
