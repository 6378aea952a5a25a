// Atomics. Relaxed order as CUDA's; several workers may share the buffers, so they are real atomics here too.
#pragma once

#define SIM_ATOMIC(T, name, expression)                                                   \
    SIM_UNSEEN T name(T* p, T v, SIM_LINE) {                                              \
        sim_atomic(p, sizeof(T), sim_line);                                               \
        T old, next;                                                                      \
        __atomic_load(p, &old, __ATOMIC_RELAXED);                                         \
        do { next = (expression); }                                                       \
        while (!__atomic_compare_exchange(p, &old, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); \
        return old;                                                                       \
    }                                                                                     \
    SIM_FN T name##_block(T* p, T v, SIM_LINE) { return name(p, v, sim_line); }           \
    SIM_FN T name##_system(T* p, T v, SIM_LINE) { return name(p, v, sim_line); }

#define SIM_ATOMIC_FETCH(T, name, builtin)                                                \
    SIM_UNSEEN T name(T* p, T v, SIM_LINE) {                                              \
        sim_atomic(p, sizeof(T), sim_line);                                               \
        return builtin(p, v, __ATOMIC_RELAXED);                                           \
    }                                                                                     \
    SIM_FN T name##_block(T* p, T v, SIM_LINE) { return name(p, v, sim_line); }           \
    SIM_FN T name##_system(T* p, T v, SIM_LINE) { return name(p, v, sim_line); }

#define SIM_INTEGER_ATOMICS(T)                              \
    SIM_ATOMIC_FETCH(T, atomicAdd, __atomic_fetch_add)      \
    SIM_ATOMIC_FETCH(T, atomicAnd, __atomic_fetch_and)      \
    SIM_ATOMIC_FETCH(T, atomicOr, __atomic_fetch_or)        \
    SIM_ATOMIC_FETCH(T, atomicXor, __atomic_fetch_xor)      \
    SIM_ATOMIC_FETCH(T, atomicExch, __atomic_exchange_n)    \
    SIM_ATOMIC(T, atomicMin, v < old ? v : old)             \
    SIM_ATOMIC(T, atomicMax, v > old ? v : old)             \
    SIM_ATOMIC(T, atomicSub, old - v)

SIM_INTEGER_ATOMICS(int)
SIM_INTEGER_ATOMICS(unsigned)
SIM_INTEGER_ATOMICS(long long)
SIM_INTEGER_ATOMICS(unsigned long long)
SIM_INTEGER_ATOMICS(unsigned long)
SIM_INTEGER_ATOMICS(long)
SIM_ATOMIC(unsigned, atomicInc, old >= v ? 0u : old + 1u)
SIM_ATOMIC(unsigned, atomicDec, old == 0u || old > v ? v : old - 1u)
SIM_ATOMIC(float, atomicAdd, old + v)
SIM_ATOMIC(float, atomicExch, v)
SIM_ATOMIC(double, atomicAdd, old + v)
SIM_ATOMIC(__half, atomicAdd, old + v)
SIM_ATOMIC(__half2, atomicAdd, __hadd2(old, v))
SIM_ATOMIC(__nv_bfloat16, atomicAdd, old + v)
SIM_ATOMIC(__nv_bfloat162, atomicAdd, __hadd2(old, v))

#define SIM_ATOMIC_CAS(T)                                                                     \
    SIM_UNSEEN T atomicCAS(T* p, T compare, T v, SIM_LINE) {                                  \
        sim_atomic(p, sizeof(T), sim_line);                                                   \
        __atomic_compare_exchange_n(p, &compare, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
        return compare;                                                                       \
    }
SIM_ATOMIC_CAS(int)
SIM_ATOMIC_CAS(unsigned)
SIM_ATOMIC_CAS(unsigned short)
SIM_ATOMIC_CAS(long long)
SIM_ATOMIC_CAS(unsigned long long)
SIM_ATOMIC_CAS(unsigned long)
