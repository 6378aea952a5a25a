"""CUDA C++ helpers at the top of every generated source: vector access, joins, and reductions over threads."""

from __future__ import annotations

from memory.records import DType
from tools.recipes.micro import C_TYPES, STATE_WORDS, Combine, Reduce

_HEADERS = {DType.F16: "#include <cuda_fp16.h>", DType.BF16: "#include <cuda_bf16.h>"}

_VECTORS = """\
// V neighbouring elements, moved with as few and as wide instructions as their size allows (at most 16 bytes each).
template <int BYTES> struct Word;
template <> struct Word<1> { typedef unsigned char type; };
template <> struct Word<2> { typedef unsigned short type; };
template <> struct Word<4> { typedef unsigned int type; };
template <> struct Word<8> { typedef uint2 type; };
template <> struct Word<16> { typedef uint4 type; };

template <typename T, int V> struct Pack {
    static constexpr int kBytes = sizeof(T) * V < 16 ? sizeof(T) * V : 16;
    static constexpr int kWords = sizeof(T) * V / kBytes;
    typedef typename Word<kBytes>::type word;
    alignas(kBytes) T lane[V];
};

template <typename T, int V> __device__ __forceinline__ Pack<T, V> load_pack(const T* from) {
    typedef Pack<T, V> P;
    P pack;
#pragma unroll
    for (int w = 0; w < P::kWords; ++w)
        reinterpret_cast<typename P::word*>(pack.lane)[w] = reinterpret_cast<const typename P::word*>(from)[w];
    return pack;
}

template <typename T, int V> __device__ __forceinline__ void store_pack(T* to, const Pack<T, V>& pack) {
    typedef Pack<T, V> P;
#pragma unroll
    for (int w = 0; w < P::kWords; ++w)
        reinterpret_cast<typename P::word*>(to)[w] = reinterpret_cast<const typename P::word*>(pack.lane)[w];
}
"""

_EXTREMES = {
    "float": ("-__int_as_float(0x7f800000)", "__int_as_float(0x7f800000)"),
    "double": ("-__longlong_as_double(0x7ff0000000000000LL)", "__longlong_as_double(0x7ff0000000000000LL)"),
    "long long": ("-9223372036854775807LL - 1", "9223372036854775807LL"),
    "int": ("-2147483647 - 1", "2147483647"),
    "short": ("-32768", "32767"),
    "signed char": ("-128", "127"),
    "unsigned char": ("0", "255"),
}
"""Lowest and highest value of each type that a reduction may run in; infinities where there are some."""

_JOINS = """\
// How two partial results become one. Extrema keep a NaN, as PyTorch does; fmaxf would drop it.
template <typename T> struct Sum {
    static __device__ __forceinline__ T identity() { return 0; }
    static __device__ __forceinline__ T join(T a, T b) { return a + b; }
    static __device__ __forceinline__ T take(T total, T value) { return join(total, value); }
};
template <typename T> struct Product {
    static __device__ __forceinline__ T identity() { return 1; }
    static __device__ __forceinline__ T join(T a, T b) { return a * b; }
    static __device__ __forceinline__ T take(T total, T value) { return join(total, value); }
};
template <typename T> struct Maximum {
    static __device__ __forceinline__ T identity() { return Extremes<T>::lowest(); }
    static __device__ __forceinline__ T join(T a, T b) { return (a > b || a != a) ? a : b; }
    static __device__ __forceinline__ T take(T total, T value) { return join(total, value); }
};
template <typename T> struct Minimum {
    static __device__ __forceinline__ T identity() { return Extremes<T>::highest(); }
    static __device__ __forceinline__ T join(T a, T b) { return (a < b || a != a) ? a : b; }
    static __device__ __forceinline__ T take(T total, T value) { return join(total, value); }
};

template <typename T> __device__ __forceinline__ T exchange(T value, int distance) {
    return __shfl_xor_sync(0xffffffffu, value, distance);
}
"""

_MOMENTS = """\
// Count, mean and sum of squared distances from it, in one sweep: Welford's update for an element, Chan's for two
// parts. Unlike a sum of squares it never subtracts two large numbers from each other.
template <typename T> struct MomentsState { T count, mean, spread; };
template <typename T> struct Moments {
    typedef MomentsState<T> S;
    static __device__ __forceinline__ S identity() { return S{0, 0, 0}; }
    static __device__ __forceinline__ S take(S a, T value) {
        const T count = a.count + 1;
        const T delta = value - a.mean;
        const T mean = a.mean + delta / count;
        return S{count, mean, a.spread + delta * (value - mean)};
    }
    static __device__ __forceinline__ S join(S a, S b) {
        const T count = a.count + b.count;
        if (count == 0) return a;
        const T delta = b.mean - a.mean, share = b.count / count;
        return S{count, a.mean + delta * share, a.spread + b.spread + delta * delta * a.count * share};
    }
};
template <typename T> __device__ __forceinline__ MomentsState<T> exchange(MomentsState<T> value, int distance) {
    return MomentsState<T>{exchange(value.count, distance), exchange(value.mean, distance),
                           exchange(value.spread, distance)};
}
"""

_EXPONENTIALS = """\
// Largest value and sum of exp(value - largest), in one sweep: the sum so far is rescaled when the largest grows.
template <typename T> struct ExponentialsState { T peak, total; };
__device__ __forceinline__ float exponential(float x) { return expf(x); }
__device__ __forceinline__ double exponential(double x) { return exp(x); }
template <typename T> struct Exponentials {
    typedef ExponentialsState<T> S;
    static __device__ __forceinline__ S identity() { return S{Extremes<T>::lowest(), 0}; }
    static __device__ __forceinline__ S take(S a, T value) {
        if (value == a.peak) return S{a.peak, a.total + 1};  // also for two infinities, whose difference is NaN
        if (value < a.peak) return S{a.peak, a.total + exponential(value - a.peak)};
        return S{value, a.total * exponential(a.peak - value) + 1};
    }
    static __device__ __forceinline__ S join(S a, S b) {
        if (a.peak == b.peak) return S{a.peak, a.total + b.total};
        if (a.peak > b.peak) return S{a.peak, a.total + b.total * exponential(b.peak - a.peak)};
        return S{b.peak, b.total + a.total * exponential(a.peak - b.peak)};
    }
};
template <typename T>
__device__ __forceinline__ ExponentialsState<T> exchange(ExponentialsState<T> value, int distance) {
    return ExponentialsState<T>{exchange(value.peak, distance), exchange(value.total, distance)};
}
"""

_STATES_IN_MEMORY = """\
// A state in a tensor of plain numbers, one after the other.
template <typename S, typename T> __device__ __forceinline__ S read_state(const T* from) {
    S state;
#pragma unroll
    for (int word = 0; word < (int)(sizeof(S) / sizeof(T)); ++word) reinterpret_cast<T*>(&state)[word] = from[word];
    return state;
}
template <typename S, typename T> __device__ __forceinline__ void write_state(T* to, S state) {
#pragma unroll
    for (int word = 0; word < (int)(sizeof(S) / sizeof(T)); ++word) to[word] = reinterpret_cast<T*>(&state)[word];
}
"""

_THREADS = """\
// The V partial results of one thread: independent while they grow (so that the additions overlap), joined here.
template <typename Op, int V, typename T> __device__ __forceinline__ T join_lanes(const T (&part)[V]) {
    T total = part[0];
#pragma unroll
    for (int v = 1; v < V; ++v) total = Op::join(total, part[v]);
    return total;
}

// Over groups of THREADS neighbouring threads; afterwards every thread of a group has the same result. Up to a warp
// that takes shuffles only; beyond it, one value of each warp goes through shared memory. A tree, so that rounding
// errors grow with the logarithm of the length rather than with the length.
template <typename Op, int THREADS, typename T> __device__ __forceinline__ T join_threads(T value, T* scratch) {
    constexpr int kGroup = THREADS < 32 ? THREADS : 32;
#pragma unroll
    for (int distance = kGroup / 2; distance > 0; distance /= 2)
        value = Op::join(value, exchange(value, distance));
    if (THREADS <= 32) return value;
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    value = scratch[0];
#pragma unroll
    for (int warp = 1; warp < THREADS / 32; ++warp) value = Op::join(value, scratch[warp]);
    return value;
}
"""

_COLUMNS = """\
// Over the threads of one column of a (BX, BY) block: each has V neighbouring results of its own. `scratch` is laid out
// so that neighbouring threads touch neighbouring words (no bank conflicts).
template <typename Op, int BX, int BY, int V, typename T>
__device__ __forceinline__ void join_columns(T (&part)[V], T* scratch) {
    if (BY == 1) return;
    __syncthreads();  // the reduction before may still be reading
#pragma unroll
    for (int v = 0; v < V; ++v) scratch[(threadIdx.y * V + v) * BX + threadIdx.x] = part[v];
    __syncthreads();
#pragma unroll
    for (int v = 0; v < V; ++v) {
        T total = scratch[v * BX + threadIdx.x];
        for (int y = 1; y < BY; ++y) total = Op::join(total, scratch[(y * V + v) * BX + threadIdx.x]);
        part[v] = total;
    }
}
"""


def prelude(dtypes: set[DType], reductions: list[Reduce], *, by_row: bool, by_column: bool) -> str:
    """Headers and helpers for kernels that touch `dtypes` and run `reductions`."""
    headers = [text for dtype, text in _HEADERS.items() if dtype in dtypes]
    combines = {op.combine for op in reductions}
    parts = ["\n".join(headers) + "\n"] if headers else []
    parts.append(_VECTORS)
    parts += [_extremes({C_TYPES[op.dtype] for op in reductions}), _JOINS] if reductions else []
    parts += [_MOMENTS] if Combine.MOMENTS in combines else []
    parts += [_EXPONENTIALS] if Combine.EXPONENTIALS in combines else []
    parts += [_STATES_IN_MEMORY] if combines & set(STATE_WORDS) and by_row else []
    parts += [_THREADS] if by_row else []
    parts += [_COLUMNS] if by_column else []
    return "\n".join(parts)


def _extremes(kinds: set[str]) -> str:
    lines = ["template <typename T> struct Extremes;"]
    for kind, (low, high) in _EXTREMES.items():
        if kind in kinds:
            lines.append(f"template <> struct Extremes<{kind}> {{")
            for name, text in (("lowest", low), ("highest", high)):
                lines.append(f"    static __device__ __forceinline__ {kind} {name}() {{ return {text}; }}")
            lines.append("};")
    return "\n".join(lines) + "\n"
