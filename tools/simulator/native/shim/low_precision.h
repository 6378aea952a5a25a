// One 16-bit float type and its pair, with CUDA's operators and intrinsics. Included once per type; no guard.
//
// SIM_LOW, SIM_LOW2: the types; SIM_TO_FLOAT, SIM_FROM_FLOAT: conversions; SIM_NAME(pre, post): names that spell the type.

struct SIM_LOW_RAW { unsigned short x; };
struct alignas(2) SIM_LOW {
    unsigned short __x;
    SIM_LOW() = default;
    SIM_FN SIM_LOW(float v) : __x(SIM_FROM_FLOAT(v)) {}
    template <class S, SIM_IF_NUMBER(S)> SIM_FN SIM_LOW(S v) : __x(SIM_FROM_FLOAT(float(v))) {}
    SIM_FN SIM_LOW(SIM_LOW_RAW r) : __x(r.x) {}
    SIM_FN operator float() const { return SIM_TO_FLOAT(__x); }
    SIM_FN SIM_LOW& operator+=(SIM_LOW o) { return *this = SIM_LOW(float(*this) + float(o)); }
    SIM_FN SIM_LOW& operator-=(SIM_LOW o) { return *this = SIM_LOW(float(*this) - float(o)); }
    SIM_FN SIM_LOW& operator*=(SIM_LOW o) { return *this = SIM_LOW(float(*this) * float(o)); }
    SIM_FN SIM_LOW& operator/=(SIM_LOW o) { return *this = SIM_LOW(float(*this) / float(o)); }
};
struct alignas(4) SIM_LOW2 {
    SIM_LOW x, y;
    SIM_LOW2() = default;
    SIM_COPY(SIM_LOW2)
    SIM_FN SIM_LOW2(SIM_LOW a, SIM_LOW b) : x(a), y(b) {}
    SIM_FN SIM_LOW2& operator+=(SIM_LOW2 o) { x += o.x; y += o.y; return *this; }
    SIM_FN SIM_LOW2& operator-=(SIM_LOW2 o) { x -= o.x; y -= o.y; return *this; }
    SIM_FN SIM_LOW2& operator*=(SIM_LOW2 o) { x *= o.x; y *= o.y; return *this; }
    SIM_FN SIM_LOW2& operator/=(SIM_LOW2 o) { x /= o.x; y /= o.y; return *this; }
};

#define SIM_OPERATOR(op)                                                                              \
    SIM_FN SIM_LOW operator op(SIM_LOW a, SIM_LOW b) { return SIM_LOW(float(a) op float(b)); }         \
    SIM_FN SIM_LOW2 operator op(SIM_LOW2 a, SIM_LOW2 b) { return SIM_LOW2(a.x op b.x, a.y op b.y); }
SIM_OPERATOR(+) SIM_OPERATOR(-) SIM_OPERATOR(*) SIM_OPERATOR(/)
#undef SIM_OPERATOR
SIM_FN SIM_LOW operator-(SIM_LOW a) { return SIM_LOW(-float(a)); }
SIM_FN SIM_LOW2 operator-(SIM_LOW2 a) { return SIM_LOW2(-a.x, -a.y); }
#define SIM_COMPARE(op, name, name2)                                                              \
    SIM_FN bool operator op(SIM_LOW a, SIM_LOW b) { return float(a) op float(b); }                \
    SIM_FN bool name(SIM_LOW a, SIM_LOW b) { return float(a) op float(b); }                       \
    SIM_FN SIM_LOW2 name2(SIM_LOW2 a, SIM_LOW2 b) {                                               \
        return SIM_LOW2(SIM_LOW(a.x op b.x ? 1.0f : 0.0f), SIM_LOW(a.y op b.y ? 1.0f : 0.0f));    \
    }
SIM_COMPARE(<, __hlt, __hlt2) SIM_COMPARE(>, __hgt, __hgt2) SIM_COMPARE(<=, __hle, __hle2)
SIM_COMPARE(>=, __hge, __hge2) SIM_COMPARE(==, __heq, __heq2) SIM_COMPARE(!=, __hne, __hne2)
#undef SIM_COMPARE

SIM_FN float SIM_NAME(__, 2float)(SIM_LOW v) { return float(v); }
SIM_FN SIM_LOW SIM_NAME(__float2, )(float v) { return SIM_LOW(v); }
SIM_FN SIM_LOW SIM_NAME(__float2, _rn)(float v) { return SIM_LOW(v); }
SIM_FN float2 SIM_NAME(__, 22float2)(SIM_LOW2 v) { return make_float2(float(v.x), float(v.y)); }
SIM_FN SIM_LOW2 SIM_NAME(__floats2, 2_rn)(float a, float b) { return SIM_LOW2(SIM_LOW(a), SIM_LOW(b)); }
SIM_FN SIM_LOW2 SIM_NAME(__float2, 2_rn)(float v) { return SIM_LOW2(SIM_LOW(v), SIM_LOW(v)); }
SIM_FN SIM_LOW SIM_NAME(__low2, )(SIM_LOW2 v) { return v.x; }
SIM_FN SIM_LOW SIM_NAME(__high2, )(SIM_LOW2 v) { return v.y; }
SIM_FN float __low2float(SIM_LOW2 v) { return float(v.x); }
SIM_FN float __high2float(SIM_LOW2 v) { return float(v.y); }

#define SIM_BINARY(name, name2, expression)                                                       \
    SIM_FN SIM_LOW name(SIM_LOW l, SIM_LOW r) { float a = float(l), b = float(r); return SIM_LOW(expression); } \
    SIM_FN SIM_LOW2 name2(SIM_LOW2 l, SIM_LOW2 r) { return SIM_LOW2(name(l.x, r.x), name(l.y, r.y)); }
SIM_BINARY(__hadd, __hadd2, a + b)
SIM_BINARY(__hadd_rn, __hadd2_rn, a + b)
SIM_BINARY(__hsub, __hsub2, a - b)
SIM_BINARY(__hmul, __hmul2, a * b)
SIM_BINARY(__hmul_rn, __hmul2_rn, a * b)
SIM_BINARY(__hdiv, __h2div, a / b)
SIM_BINARY(__hmax, __hmax2, __builtin_fmaxf(a, b))
SIM_BINARY(__hmin, __hmin2, __builtin_fminf(a, b))
#undef SIM_BINARY

#define SIM_UNARY(name, name2, expression)                                                        \
    SIM_FN SIM_LOW name(SIM_LOW v) { float a = float(v); return SIM_LOW(expression); }            \
    SIM_FN SIM_LOW2 name2(SIM_LOW2 v) { return SIM_LOW2(name(v.x), name(v.y)); }
SIM_UNARY(__hneg, __hneg2, -a)
SIM_UNARY(__habs, __habs2, __builtin_fabsf(a))
SIM_UNARY(hexp, h2exp, __builtin_expf(a))
SIM_UNARY(hexp2, h2exp2, __builtin_exp2f(a))
SIM_UNARY(hlog, h2log, __builtin_logf(a))
SIM_UNARY(hlog2, h2log2, __builtin_log2f(a))
SIM_UNARY(hsqrt, h2sqrt, __builtin_sqrtf(a))
SIM_UNARY(hrsqrt, h2rsqrt, 1.0f / __builtin_sqrtf(a))
SIM_UNARY(hrcp, h2rcp, 1.0f / a)
SIM_UNARY(hsin, h2sin, __builtin_sinf(a))
SIM_UNARY(hcos, h2cos, __builtin_cosf(a))
SIM_UNARY(htanh, h2tanh, __builtin_tanhf(a))
SIM_UNARY(hfloor, h2floor, __builtin_floorf(a))
SIM_UNARY(hceil, h2ceil, __builtin_ceilf(a))
SIM_UNARY(htrunc, h2trunc, __builtin_truncf(a))
SIM_UNARY(hrint, h2rint, __builtin_rintf(a))
#undef SIM_UNARY

SIM_FN SIM_LOW __hfma(SIM_LOW a, SIM_LOW b, SIM_LOW c) {
    return SIM_LOW(__builtin_fmaf(float(a), float(b), float(c)));
}
SIM_FN SIM_LOW2 __hfma2(SIM_LOW2 a, SIM_LOW2 b, SIM_LOW2 c) {
    return SIM_LOW2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}
SIM_FN SIM_LOW __hfma_relu(SIM_LOW a, SIM_LOW b, SIM_LOW c) { return __hmax(__hfma(a, b, c), SIM_LOW(0.0f)); }
SIM_FN bool __hisnan(SIM_LOW a) { return __builtin_isnan(float(a)); }
SIM_FN bool __hisinf(SIM_LOW a) { return __builtin_isinf(float(a)); }
