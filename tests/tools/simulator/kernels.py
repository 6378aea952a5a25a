"""Kernels with known figures on real hardware, used by the tests of metrics and of the time model."""

VADD = """extern "C" __global__ void k(const float* __restrict__ a, const float* __restrict__ b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
"""

VADD4 = """extern "C" __global__ void k(const float4* __restrict__ a, const float4* __restrict__ b, float4* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float4 x = a[i], y = b[i];
    c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
  }
}
"""

STRIDED = """extern "C" __global__ void k(const float* __restrict__ a, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  c[i] = a[(size_t)i * STRIDE];
}
"""

TRANSPOSE_NAIVE = """extern "C" __global__ void k(const float* __restrict__ in, float* out, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(size_t)x * n + y + j] = in[(size_t)(y + j) * n + x];
}
"""

TRANSPOSE_TILED = """extern "C" __global__ void k(const float* __restrict__ in, float* out, int n) {
  __shared__ float tile[32][32 + PAD];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(size_t)(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(size_t)(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
"""

ROW_REDUCTIONS = """
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}
__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
  return v;
}
"""

SOFTMAX = (
    ROW_REDUCTIONS
    + """
extern "C" __global__ void k(const float* __restrict__ in, float* out, int cols) {
  __shared__ float part[8];
  const float* row = in + (size_t)blockIdx.x * cols;
  float* result = out + (size_t)blockIdx.x * cols;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float m = -INFINITY;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) m = fmaxf(m, row[i]);
  m = warp_max(m);
  if (lane == 0) part[warp] = m;
  __syncthreads();
  m = part[0];
  for (int i = 1; i < 8; i++) m = fmaxf(m, part[i]);
  __syncthreads();
  float s = 0;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) s += __expf(row[i] - m);
  s = warp_sum(s);
  if (lane == 0) part[warp] = s;
  __syncthreads();
  s = 0;
  for (int i = 0; i < 8; i++) s += part[i];
  float inv = 1.0f / s;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) result[i] = __expf(row[i] - m) * inv;
}
"""
)

LAYERNORM = (
    ROW_REDUCTIONS
    + """
extern "C" __global__ void k(const float4* __restrict__ in, const float4* __restrict__ g,
                             const float4* __restrict__ b, float4* out, int cols, float eps) {
  __shared__ float part[16];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  size_t at = (size_t)blockIdx.x * (cols / 4) + threadIdx.x;
  float4 v = in[at];
  float s = warp_sum(v.x + v.y + v.z + v.w);
  float q = warp_sum(v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w);
  if (lane == 0) { part[warp] = s; part[8 + warp] = q; }
  __syncthreads();
  s = q = 0;
  for (int i = 0; i < 8; i++) { s += part[i]; q += part[8 + i]; }
  float mean = s / cols, r = rsqrtf(q / cols - mean * mean + eps);
  float4 gg = g[threadIdx.x], bb = b[threadIdx.x];
  out[at] = make_float4((v.x - mean) * r * gg.x + bb.x, (v.y - mean) * r * gg.y + bb.y,
                        (v.z - mean) * r * gg.z + bb.z, (v.w - mean) * r * gg.w + bb.w);
}
"""
)

MATMUL_TILED = """extern "C" __global__ void k(const float* __restrict__ a, const float* __restrict__ b, float* c,
                             int n) {
  __shared__ float x[TILE][TILE], y[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < n; t += TILE) {
    x[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
    y[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + col];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; k++) sum += x[threadIdx.y][k] * y[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + col] = sum;
}
"""

HISTOGRAM = """extern "C" __global__ void k(const int* __restrict__ in, int* bins, int n) {
  int first = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = first; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[in[i]], 1);
}
"""
