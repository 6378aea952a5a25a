// Keywords, fixed-width types, indices, barriers, printf and assert.
#pragma once

#define __global__ __attribute__((noinline))
#define __device__
#define __host__
#ifdef SIM_INSTR
// Padding between variables, so that a pointer that overruns one does not land in the next unnoticed; `used`, as
// GCC would otherwise know that a variable nobody writes is zero.
#define __shared__ static __attribute__((aligned(128), used))
#else
#define __shared__ static
#endif
#define __constant__ static
#define __managed__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __restrict__ __restrict
#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
#define __CUDACC_RTC__ 1

// Helpers of ours that touch memory on the user's behalf report it themselves: keep the hooks out of them.
#ifdef SIM_INSTR
#define SIM_UNSEEN __attribute__((noinline, no_sanitize("thread"), no_sanitize_coverage))
#else
#define SIM_UNSEEN inline __attribute__((always_inline))
#endif
#define SIM_FN inline __attribute__((always_inline))
#define SIM_LINE int sim_line = __builtin_LINE()

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned char uchar;
typedef unsigned long ulong;

namespace std {
using ::int8_t; using ::uint8_t; using ::int16_t; using ::uint16_t; using ::int32_t; using ::uint32_t;
using ::int64_t; using ::uint64_t; using ::intptr_t; using ::uintptr_t;
}

#define NULL __null
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VAL __builtin_huge_val()
#define HUGE_VALF __builtin_huge_valf()
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define DBL_MAX __DBL_MAX__
#define DBL_MIN __DBL_MIN__
#define DBL_EPSILON __DBL_EPSILON__
#define INT_MAX __INT_MAX__
#define INT_MIN (-__INT_MAX__ - 1)
#define UINT_MAX (__INT_MAX__ * 2u + 1u)
#define LLONG_MAX __LONG_LONG_MAX__
#define M_PI 3.14159265358979323846
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LN2 0.69314718055994530942
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define M_2_SQRTPI 1.12837916709551257390
#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_PI_F 3.141592654f
#define CUDART_INF __builtin_inf()

extern "C" {
int sim_barrier(int kind, int predicate, int line);
unsigned long sim_warp_op(int kind, unsigned mask, unsigned long value, int argument, int line);
unsigned sim_active_mask();
unsigned sim_lane();
int sim_printf(const char* format, ...) __attribute__((format(printf, 1, 2)));
void sim_assert_failed(const char* expression, int line) __attribute__((noreturn));
void sim_trap(int line) __attribute__((noreturn));
long long sim_clock();
void sim_atomic(const volatile void* address, int bytes, int line);
extern unsigned char sim_dynamic_shared[];  // what `extern __shared__` declarations become references to
void* memcpy(void*, const void*, size_t);
void* memset(void*, int, size_t);
}

#define printf sim_printf
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : sim_assert_failed(#condition, __builtin_LINE()))
#endif

// Constants while a thread runs, so reads may be cached; plain structs, which instrumentation skips.
struct uint3 { unsigned x, y, z; };
extern const uint3 threadIdx __asm__("sim_thread_idx");
extern const uint3 blockIdx __asm__("sim_block_idx");
extern const uint3 blockDim __asm__("sim_block_dim");
extern const uint3 gridDim __asm__("sim_grid_dim");
static const int warpSize = 32;

SIM_FN void __syncthreads(SIM_LINE) { sim_barrier(SIM_BARRIER, 0, sim_line); }
SIM_FN int __syncthreads_count(int p, SIM_LINE) { return sim_barrier(SIM_BARRIER_COUNT, p, sim_line); }
SIM_FN int __syncthreads_and(int p, SIM_LINE) { return sim_barrier(SIM_BARRIER_AND, p, sim_line); }
SIM_FN int __syncthreads_or(int p, SIM_LINE) { return sim_barrier(SIM_BARRIER_OR, p, sim_line); }
SIM_FN void __threadfence() { __asm__ volatile("" ::: "memory"); }
SIM_FN void __threadfence_block() { __asm__ volatile("" ::: "memory"); }
SIM_FN void __threadfence_system() { __asm__ volatile("" ::: "memory"); }
SIM_FN void __trap(SIM_LINE) { sim_trap(sim_line); }
SIM_FN void __brkpt() {}
SIM_FN void __nanosleep(unsigned) {}
SIM_FN long long clock64() { return sim_clock(); }
SIM_FN int clock() { return (int)sim_clock(); }
SIM_FN unsigned long long __globaltimer() { return (unsigned long long)sim_clock(); }
#define __builtin_assume(condition) ((void)0)
#define __isGlobal(p) (true)
