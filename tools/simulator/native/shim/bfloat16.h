// __nv_bfloat16: the upper half of a float, rounded to nearest even.
#pragma once

SIM_FN unsigned short sim_float_to_bfloat(float x) {
    unsigned bits = sim_bits<unsigned>(x);
    if (x != x) return 0x7fff;
    return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}
SIM_FN float sim_bfloat_to_float(unsigned short bits) { return sim_bits<float>((unsigned)bits << 16); }

#define SIM_LOW __nv_bfloat16
#define SIM_LOW2 __nv_bfloat162
#define SIM_LOW_RAW __nv_bfloat16_raw
#define SIM_TO_FLOAT sim_bfloat_to_float
#define SIM_FROM_FLOAT sim_float_to_bfloat
#define SIM_NAME(pre, post) pre##bfloat16##post
#include "low_precision.h"
#undef SIM_LOW
#undef SIM_LOW2
#undef SIM_LOW_RAW
#undef SIM_TO_FLOAT
#undef SIM_FROM_FLOAT
#undef SIM_NAME

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
SIM_FN __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
SIM_FN __nv_bfloat162 __float22bfloat162_rn(float2 v) { return __floats2bfloat162_rn(v.x, v.y); }
SIM_FN __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 v) { return __nv_bfloat162(v, v); }
SIM_FN __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16((float)x); }
SIM_FN __nv_bfloat16 __int2bfloat16_rn(int x) { return __nv_bfloat16((float)x); }
SIM_FN unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.__x; }
SIM_FN short __bfloat16_as_short(__nv_bfloat16 x) { return (short)x.__x; }
SIM_FN __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) { __nv_bfloat16 h; h.__x = x; return h; }
SIM_FN __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
