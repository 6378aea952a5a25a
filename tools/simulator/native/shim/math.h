// CUDA's mathematics over the host's libm. Results differ from the GPU's in the last places; fast intrinsics are exact here.
#pragma once

#define SIM_MATH1(name)                                                             \
    extern "C" double name(double) noexcept;                                        \
    extern "C" float name##f(float) noexcept;                                       \
    SIM_FN float name(float x) { return __builtin_##name##f(x); }                   \
    SIM_FN double name(int x) { return __builtin_##name(x); }                       \
    namespace std { using ::name; }
#define SIM_MATH2(name)                                                             \
    extern "C" double name(double, double) noexcept;                                \
    extern "C" float name##f(float, float) noexcept;                                \
    SIM_FN float name(float x, float y) { return __builtin_##name##f(x, y); }       \
    SIM_FN double name(double x, float y) { return __builtin_##name(x, y); }        \
    SIM_FN double name(float x, double y) { return __builtin_##name(x, y); }        \
    SIM_FN float name(float x, int y) { return __builtin_##name##f(x, float(y)); }  \
    SIM_FN double name(double x, int y) { return __builtin_##name(x, y); }          \
    namespace std { using ::name; }

SIM_MATH1(acos) SIM_MATH1(acosh) SIM_MATH1(asin) SIM_MATH1(asinh) SIM_MATH1(atan) SIM_MATH1(atanh)
SIM_MATH1(cbrt) SIM_MATH1(ceil) SIM_MATH1(cos) SIM_MATH1(cosh) SIM_MATH1(erf) SIM_MATH1(erfc)
SIM_MATH1(exp) SIM_MATH1(exp2) SIM_MATH1(expm1) SIM_MATH1(fabs) SIM_MATH1(floor) SIM_MATH1(lgamma)
SIM_MATH1(log) SIM_MATH1(log10) SIM_MATH1(log1p) SIM_MATH1(log2) SIM_MATH1(logb) SIM_MATH1(nearbyint)
SIM_MATH1(rint) SIM_MATH1(round) SIM_MATH1(sin) SIM_MATH1(sinh) SIM_MATH1(sqrt) SIM_MATH1(tan)
SIM_MATH1(tanh) SIM_MATH1(tgamma) SIM_MATH1(trunc)
SIM_MATH2(atan2) SIM_MATH2(copysign) SIM_MATH2(fdim) SIM_MATH2(fmod)
SIM_MATH2(hypot) SIM_MATH2(nextafter) SIM_MATH2(pow) SIM_MATH2(remainder)

extern "C" {
double fma(double, double, double) noexcept;
float fmaf(float, float, float) noexcept;
double ldexp(double, int) noexcept;
float ldexpf(float, int) noexcept;
double frexp(double, int*) noexcept;
float frexpf(float, int*) noexcept;
double modf(double, double*) noexcept;
float modff(float, float*) noexcept;
int ilogb(double) noexcept;
int ilogbf(float) noexcept;
double scalbn(double, int) noexcept;
float scalbnf(float, int) noexcept;
long lrint(double) noexcept;
long lrintf(float) noexcept;
long lround(double) noexcept;
long lroundf(float) noexcept;
long long llrint(double) noexcept;
long long llrintf(float) noexcept;
long long llround(double) noexcept;
long long llroundf(float) noexcept;
void sincos(double, double*, double*) noexcept;
void sincosf(float, float*, float*) noexcept;
double j0(double) noexcept;
float j0f(float) noexcept;
double j1(double) noexcept;
float j1f(float) noexcept;
int abs(int) noexcept;
long labs(long) noexcept;
long long llabs(long long) noexcept;
}
// GCC calls the library for fmaxf, whose NaN rule one comparison more gives too; written out it stays one or two
// instructions, as FMNMX is one.
SIM_FN constexpr float sim_fmaxf(float x, float y) { return x != x ? y : x < y ? y : x; }
SIM_FN constexpr float sim_fminf(float x, float y) { return x != x ? y : y < x ? y : x; }
#define fmaxf sim_fmaxf
#define fminf sim_fminf
SIM_FN float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
SIM_FN float ldexp(float x, int e) { return __builtin_ldexpf(x, e); }
SIM_FN float abs(float x) { return __builtin_fabsf(x); }
SIM_FN double abs(double x) { return __builtin_fabs(x); }
SIM_FN long abs(long x) { return x < 0 ? -x : x; }
SIM_FN long long abs(long long x) { return x < 0 ? -x : x; }
#undef isnan
#undef isinf
#undef isfinite
#undef signbit
#define SIM_CLASSIFY(T)                                          \
    SIM_FN bool isnan(T x) { return __builtin_isnan(x); }        \
    SIM_FN bool isinf(T x) { return __builtin_isinf(x); }        \
    SIM_FN bool isfinite(T x) { return __builtin_isfinite(x); }  \
    SIM_FN bool signbit(T x) { return __builtin_signbit(x); }
SIM_CLASSIFY(float)
SIM_CLASSIFY(double)
SIM_FN int __isnanf(float x) { return __builtin_isnan(x); }
SIM_FN int __isinff(float x) { return __builtin_isinf(x); }
SIM_FN int __finitef(float x) { return __builtin_isfinite(x); }
extern "C" double fmax(double, double) noexcept;
extern "C" double fmin(double, double) noexcept;
SIM_FN constexpr float fmax(float x, float y) { return sim_fmaxf(x, y); }
SIM_FN constexpr float fmin(float x, float y) { return sim_fminf(x, y); }
SIM_FN double fmax(double x, float y) { return __builtin_fmax(x, y); }
SIM_FN double fmin(double x, float y) { return __builtin_fmin(x, y); }
SIM_FN double fmax(float x, double y) { return __builtin_fmax(x, y); }
SIM_FN double fmin(float x, double y) { return __builtin_fmin(x, y); }
namespace std { using ::fmax; using ::fmin; using ::sim_fmaxf; using ::sim_fminf; }
namespace std { using ::abs; using ::fma; using ::isnan; using ::isinf; using ::isfinite; using ::signbit; }

SIM_FN float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
SIM_FN double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
SIM_FN float rsqrt(float x) { return rsqrtf(x); }
SIM_FN float rcbrtf(float x) { return 1.0f / __builtin_cbrtf(x); }
SIM_FN float exp10f(float x) { return __builtin_exp10f(x); }
SIM_FN double exp10(double x) { return __builtin_exp10(x); }
SIM_FN float sinpif(float x) { return (float)__builtin_sin(3.14159265358979323846 * x); }
SIM_FN float cospif(float x) { return (float)__builtin_cos(3.14159265358979323846 * x); }
SIM_FN double sinpi(double x) { return __builtin_sin(3.14159265358979323846 * x); }
SIM_FN double cospi(double x) { return __builtin_cos(3.14159265358979323846 * x); }
SIM_FN float normcdff(float x) { return 0.5f * __builtin_erfcf(-x * 0.70710678f); }
SIM_FN double normcdf(double x) { return 0.5 * __builtin_erfc(-x * 0.70710678118654752440); }
SIM_FN float erfcxf(float x) { return (float)(__builtin_exp((double)x * x) * __builtin_erfc(x)); }
SIM_FN float norm3df(float x, float y, float z) { return __builtin_sqrtf(x * x + y * y + z * z); }
SIM_FN float rhypotf(float x, float y) { return 1.0f / __builtin_hypotf(x, y); }
SIM_FN float fdividef(float x, float y) { return x / y; }
SIM_FN float saturate(float x) { return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x == x ? x : 0.0f; }

// Fast-math intrinsics: computed exactly, so tolerances pass more easily here than on hardware.
SIM_FN float __expf(float x) { return __builtin_expf(x); }
SIM_FN float __exp10f(float x) { return __builtin_exp10f(x); }
SIM_FN float __logf(float x) { return __builtin_logf(x); }
SIM_FN float __log2f(float x) { return __builtin_log2f(x); }
SIM_FN float __log10f(float x) { return __builtin_log10f(x); }
SIM_FN float __sinf(float x) { return __builtin_sinf(x); }
SIM_FN float __cosf(float x) { return __builtin_cosf(x); }
SIM_FN float __tanf(float x) { return __builtin_tanf(x); }
SIM_FN float __tanhf(float x) { return __builtin_tanhf(x); }
SIM_FN float __powf(float x, float y) { return __builtin_powf(x, y); }
SIM_FN void __sincosf(float x, float* s, float* c) { *s = __builtin_sinf(x); *c = __builtin_cosf(x); }
SIM_FN float __fdividef(float x, float y) { return x / y; }
SIM_FN float __saturatef(float x) { return saturate(x); }
SIM_FN float __frsqrt_rn(float x) { return 1.0f / __builtin_sqrtf(x); }

#define SIM_ROUNDED(suffix)                                                                  \
    SIM_FN float __fadd_##suffix(float a, float b) { return a + b; }                         \
    SIM_FN float __fsub_##suffix(float a, float b) { return a - b; }                         \
    SIM_FN float __fmul_##suffix(float a, float b) { return a * b; }                         \
    SIM_FN float __fdiv_##suffix(float a, float b) { return a / b; }                         \
    SIM_FN float __frcp_##suffix(float a) { return 1.0f / a; }                               \
    SIM_FN float __fsqrt_##suffix(float a) { return __builtin_sqrtf(a); }                    \
    SIM_FN float __fmaf_##suffix(float a, float b, float c) { return __builtin_fmaf(a, b, c); } \
    SIM_FN double __dadd_##suffix(double a, double b) { return a + b; }                      \
    SIM_FN double __dsub_##suffix(double a, double b) { return a - b; }                      \
    SIM_FN double __dmul_##suffix(double a, double b) { return a * b; }                      \
    SIM_FN double __ddiv_##suffix(double a, double b) { return a / b; }                      \
    SIM_FN double __drcp_##suffix(double a) { return 1.0 / a; }                              \
    SIM_FN double __dsqrt_##suffix(double a) { return __builtin_sqrt(a); }                   \
    SIM_FN double __fma_##suffix(double a, double b, double c) { return __builtin_fma(a, b, c); } \
    SIM_FN float __int2float_##suffix(int x) { return (float)x; }                            \
    SIM_FN float __uint2float_##suffix(unsigned x) { return (float)x; }                      \
    SIM_FN float __ll2float_##suffix(long long x) { return (float)x; }                       \
    SIM_FN float __double2float_##suffix(double x) { return (float)x; }
SIM_ROUNDED(rn) SIM_ROUNDED(rz) SIM_ROUNDED(ru) SIM_ROUNDED(rd)

// Out-of-range conversions saturate on the GPU and NaN becomes 0.
SIM_FN int sim_to_int(double x) {
    return x != x ? 0 : x >= 2147483647.0 ? 2147483647 : x <= -2147483648.0 ? -2147483647 - 1 : (int)x;
}
SIM_FN unsigned sim_to_uint(double x) { return !(x > 0.0) ? 0u : x >= 4294967295.0 ? 4294967295u : (unsigned)x; }
#define SIM_TO_INT(suffix, rounding)                                                         \
    SIM_FN int __float2int_##suffix(float x) { return sim_to_int(rounding((double)x)); }     \
    SIM_FN unsigned __float2uint_##suffix(float x) { return sim_to_uint(rounding((double)x)); } \
    SIM_FN long long __float2ll_##suffix(float x) { return (long long)rounding((double)x); } \
    SIM_FN int __double2int_##suffix(double x) { return sim_to_int(rounding(x)); }
SIM_TO_INT(rn, __builtin_rint) SIM_TO_INT(rz, __builtin_trunc) SIM_TO_INT(ru, __builtin_ceil) SIM_TO_INT(rd, __builtin_floor)

// Bit patterns.
template <class To, class From> SIM_FN To sim_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "same size");
    To to;
    __builtin_memcpy((void*)&to, &from, sizeof(To));
    return to;
}
SIM_FN int __float_as_int(float x) { return sim_bits<int>(x); }
SIM_FN unsigned __float_as_uint(float x) { return sim_bits<unsigned>(x); }
SIM_FN float __int_as_float(int x) { return sim_bits<float>(x); }
SIM_FN float __uint_as_float(unsigned x) { return sim_bits<float>(x); }
SIM_FN long long __double_as_longlong(double x) { return sim_bits<long long>(x); }
SIM_FN double __longlong_as_double(long long x) { return sim_bits<double>(x); }
SIM_FN int __double2hiint(double x) { return (int)(sim_bits<long long>(x) >> 32); }
SIM_FN int __double2loint(double x) { return (int)sim_bits<long long>(x); }
SIM_FN double __hiloint2double(int hi, int lo) {
    return sim_bits<double>((long long)(((unsigned long long)(unsigned)hi << 32) | (unsigned)lo));
}
SIM_FN int __popc(unsigned x) { return __builtin_popcount(x); }
SIM_FN int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
SIM_FN int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
SIM_FN int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
SIM_FN int __ffs(int x) { return __builtin_ffs(x); }
SIM_FN int __ffsll(long long x) { return __builtin_ffsll(x); }
SIM_FN unsigned __brev(unsigned x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
SIM_FN unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
SIM_FN unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
    unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) r |= (unsigned)(both >> ((s >> (4 * i) & 7) * 8) & 0xff) << (8 * i);
    return r;
}
SIM_FN unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n) {
    return (unsigned)((((unsigned long long)hi << 32 | lo) << (n & 31)) >> 32);
}
SIM_FN unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n) {
    return (unsigned)(((unsigned long long)hi << 32 | lo) >> (n & 31));
}

// Integer arithmetic.
SIM_FN int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
SIM_FN unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
SIM_FN long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
SIM_FN unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
SIM_FN int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
SIM_FN unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
SIM_FN unsigned __sad(int a, int b, unsigned c) { return c + (unsigned)(a > b ? a - b : b - a); }
SIM_FN int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
SIM_FN int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
SIM_FN int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 4; i++) c += (signed char)(a >> 8 * i) * (signed char)(b >> 8 * i);
    return c;
}
SIM_FN unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 4; i++) c += (a >> 8 * i & 0xff) * (b >> 8 * i & 0xff);
    return c;
}

#define SIM_MINMAX(T, A, B)                                        \
    SIM_FN constexpr T min(A a, B b) { return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a); } \
    SIM_FN constexpr T max(A a, B b) { return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a); }
SIM_MINMAX(int, int, int)
SIM_MINMAX(unsigned, unsigned, unsigned)
SIM_MINMAX(unsigned, int, unsigned)
SIM_MINMAX(unsigned, unsigned, int)
SIM_MINMAX(long, long, long)
SIM_MINMAX(unsigned long, unsigned long, unsigned long)
SIM_MINMAX(long long, long long, long long)
SIM_MINMAX(unsigned long long, unsigned long long, unsigned long long)
SIM_MINMAX(long long, long long, int)
SIM_MINMAX(long long, int, long long)
SIM_MINMAX(long, long, int)
SIM_MINMAX(long, int, long)
#undef SIM_MINMAX
// As fminf and fmaxf: a NaN operand gives the other one.
#define SIM_MINMAX(T, A, B)                                                                \
    SIM_FN constexpr T min(A a, B b) { return static_cast<T>(a) != static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a); } \
    SIM_FN constexpr T max(A a, B b) { return static_cast<T>(a) != static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a); }
SIM_MINMAX(float, float, float)
SIM_MINMAX(double, double, double)
SIM_MINMAX(double, float, double)
SIM_MINMAX(double, double, float)
SIM_MINMAX(float, float, int)
SIM_MINMAX(float, int, float)
SIM_MINMAX(double, double, int)
SIM_MINMAX(double, int, double)

// Cache hints change nothing that the simulator models.
#define SIM_LOAD(name) template <class T> SIM_FN T name(const T* p) { return *p; }
SIM_LOAD(__ldg) SIM_LOAD(__ldca) SIM_LOAD(__ldcg) SIM_LOAD(__ldcs) SIM_LOAD(__ldlu) SIM_LOAD(__ldcv)
#define SIM_STORE(name) template <class T> SIM_FN void name(T* p, T v) { *p = v; }
SIM_STORE(__stwb) SIM_STORE(__stcg) SIM_STORE(__stcs) SIM_STORE(__stwt)
SIM_FN size_t __cvta_generic_to_shared(const void* p) { return (size_t)p; }
