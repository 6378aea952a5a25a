// CUDA's short vector types. In instrumented builds a copy is one access of the whole vector, as LDG.128 is.
#pragma once

template <int N> struct sim_raw;
template <> struct sim_raw<2> { typedef unsigned short type __attribute__((may_alias)); };
template <> struct sim_raw<4> { typedef unsigned type __attribute__((may_alias)); };
template <> struct sim_raw<8> { typedef unsigned long type __attribute__((may_alias)); };
template <> struct sim_raw<16> { typedef unsigned type __attribute__((may_alias, vector_size(16))); };

#ifdef SIM_INSTR
#define SIM_COPY(T)                                                              \
    SIM_FN T(const T& o) {                                                       \
        typedef typename sim_raw<sizeof(T)>::type raw;                           \
        *(raw*)this = *(const raw*)&o;                                           \
    }                                                                            \
    SIM_FN T& operator=(const T& o) {                                            \
        typedef typename sim_raw<sizeof(T)>::type raw;                           \
        *(raw*)this = *(const raw*)&o;                                           \
        return *this;                                                            \
    }
#else
#define SIM_COPY(T)            \
    constexpr T(const T&) = default; \
    constexpr T& operator=(const T&) = default;
#endif

template <class T> struct sim_is_number { static constexpr bool value = false; };
#define SIM_NUMBER(T) template <> struct sim_is_number<T> { static constexpr bool value = true; };
SIM_NUMBER(char) SIM_NUMBER(signed char) SIM_NUMBER(unsigned char) SIM_NUMBER(short) SIM_NUMBER(unsigned short)
SIM_NUMBER(int) SIM_NUMBER(unsigned) SIM_NUMBER(long) SIM_NUMBER(unsigned long) SIM_NUMBER(long long)
SIM_NUMBER(unsigned long long) SIM_NUMBER(float) SIM_NUMBER(double) SIM_NUMBER(bool)
template <bool B, class T = int> struct sim_enable_if {};
template <class T> struct sim_enable_if<true, T> { typedef T type; };
#define SIM_IF_NUMBER(S) typename sim_enable_if<sim_is_number<S>::value>::type = 0

#define SIM_VECTORS(T, name, align2, align4, COPY2, COPY4)                                             \
    struct name##1 { T x; };                                                                           \
    struct alignas(align2) name##2 {                                                                   \
        T x, y;                                                                                        \
        name##2() = default;                                                                           \
        COPY2(name##2)                                                                                 \
        SIM_FN constexpr name##2(T a, T b) : x(a), y(b) {}                                             \
        template <class S, SIM_IF_NUMBER(S)> SIM_FN constexpr name##2(S a) : x(static_cast<T>(a)), y() {}           \
    };                                                                                                 \
    struct alignas(align4) name##4 {                                                                   \
        T x, y, z, w;                                                                                  \
        name##4() = default;                                                                           \
        COPY4(name##4)                                                                                 \
        SIM_FN constexpr name##4(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}                       \
        template <class S, SIM_IF_NUMBER(S)>                                                           \
        SIM_FN constexpr name##4(S a) : x(static_cast<T>(a)), y(), z(), w() {}                                      \
    };                                                                                                 \
    SIM_FN constexpr name##1 make_##name##1(T x) { return name##1{x}; }                                \
    SIM_FN constexpr name##2 make_##name##2(T x, T y) { return name##2(x, y); }                        \
    SIM_FN constexpr name##3 make_##name##3(T x, T y, T z) { return name##3{x, y, z}; }                \
    SIM_FN constexpr name##4 make_##name##4(T x, T y, T z, T w) { return name##4(x, y, z, w); }

#define SIM_NO_COPY(T)               \
    constexpr T(const T&) = default; \
    constexpr T& operator=(const T&) = default;

#define SIM_VECTOR3(T, name) struct name##3 { T x, y, z; };
SIM_VECTOR3(signed char, char) SIM_VECTOR3(unsigned char, uchar) SIM_VECTOR3(short, short)
SIM_VECTOR3(unsigned short, ushort) SIM_VECTOR3(int, int) SIM_VECTOR3(float, float) SIM_VECTOR3(long, long)
SIM_VECTOR3(unsigned long, ulong) SIM_VECTOR3(long long, longlong) SIM_VECTOR3(unsigned long long, ulonglong)
SIM_VECTOR3(double, double)  // uint3 is the type of threadIdx, in language.h

SIM_VECTORS(signed char, char, 2, 4, SIM_COPY, SIM_COPY)
SIM_VECTORS(unsigned char, uchar, 2, 4, SIM_COPY, SIM_COPY)
SIM_VECTORS(short, short, 4, 8, SIM_COPY, SIM_COPY)
SIM_VECTORS(unsigned short, ushort, 4, 8, SIM_COPY, SIM_COPY)
SIM_VECTORS(int, int, 8, 16, SIM_COPY, SIM_COPY)
SIM_VECTORS(unsigned, uint, 8, 16, SIM_COPY, SIM_COPY)
SIM_VECTORS(float, float, 8, 16, SIM_COPY, SIM_COPY)
SIM_VECTORS(long, long, 16, 16, SIM_COPY, SIM_NO_COPY)
SIM_VECTORS(unsigned long, ulong, 16, 16, SIM_COPY, SIM_NO_COPY)
SIM_VECTORS(long long, longlong, 16, 16, SIM_COPY, SIM_NO_COPY)
SIM_VECTORS(unsigned long long, ulonglong, 16, 16, SIM_COPY, SIM_NO_COPY)
SIM_VECTORS(double, double, 16, 16, SIM_COPY, SIM_NO_COPY)

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
    constexpr dim3(uint3 i) : x(i.x), y(i.y), z(i.z) {}
};
