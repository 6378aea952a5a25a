// __half: IEEE binary16 stored as bits, computed in float with one rounding an operation.
#pragma once

typedef float sim_float4v __attribute__((vector_size(16)));
typedef short sim_short8v __attribute__((vector_size(16)));

SIM_FN unsigned short sim_float_to_half(float x) {
    return (unsigned short)__builtin_ia32_vcvtps2ph(sim_float4v{x, 0, 0, 0}, 0)[0];
}
SIM_FN float sim_half_to_float(unsigned short bits) {
    return __builtin_ia32_vcvtph2ps(sim_short8v{(short)bits, 0, 0, 0, 0, 0, 0, 0})[0];
}

#define SIM_LOW __half
#define SIM_LOW2 __half2
#define SIM_LOW_RAW __half_raw
#define SIM_TO_FLOAT sim_half_to_float
#define SIM_FROM_FLOAT sim_float_to_half
#define SIM_NAME(pre, post) pre##half##post
#include "low_precision.h"
#undef SIM_LOW
#undef SIM_LOW2
#undef SIM_LOW_RAW
#undef SIM_TO_FLOAT
#undef SIM_FROM_FLOAT
#undef SIM_NAME

typedef __half half;
typedef __half2 half2;
SIM_FN half2 make_half2(__half a, __half b) { return __half2(a, b); }
SIM_FN __half2 __float22half2_rn(float2 v) { return __floats2half2_rn(v.x, v.y); }
SIM_FN __half __double2half(double x) { return __half((float)x); }
SIM_FN __half __int2half_rn(int x) { return __half((float)x); }
SIM_FN int __half2int_rn(__half x) { return (int)__builtin_rintf(__half2float(x)); }
SIM_FN int __half2int_rz(__half x) { return (int)__half2float(x); }
SIM_FN short __half_as_short(__half x) { return (short)x.__x; }
SIM_FN unsigned short __half_as_ushort(__half x) { return x.__x; }
SIM_FN __half __short_as_half(short x) { __half h; h.__x = (unsigned short)x; return h; }
SIM_FN __half __ushort_as_half(unsigned short x) { __half h; h.__x = x; return h; }
SIM_FN __half2 __halves2half2(__half a, __half b) { return __half2(a, b); }
SIM_FN __half2 __half2half2(__half v) { return __half2(v, v); }
SIM_FN __half2 __low2half2(__half2 v) { return __half2(v.x, v.x); }
SIM_FN __half2 __high2half2(__half2 v) { return __half2(v.y, v.y); }
SIM_FN __half2 __lowhigh2highlow(__half2 v) { return __half2(v.y, v.x); }
