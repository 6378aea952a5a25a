// Warp operations. The source lane is computed here; the runner moves the values when every named lane arrived.
#pragma once

template <class T> SIM_FN unsigned long sim_pack(T v) {
    static_assert(sizeof(T) <= 8, "warp operations take values of at most 8 bytes");
    unsigned long bits = 0;
    __builtin_memcpy(&bits, &v, sizeof(T));
    return bits;
}
template <class T> SIM_FN T sim_unpack(unsigned long bits) {
    T v;
    __builtin_memcpy((void*)&v, &bits, sizeof(T));
    return v;
}
template <class T> SIM_FN T sim_shuffle(unsigned mask, T v, int source, int line) {
    return sim_unpack<T>(sim_warp_op(SIM_SHUFFLE, mask, sim_pack(v), source, line));
}

template <class T> SIM_FN T __shfl_sync(unsigned mask, T v, int source, int width = 32, SIM_LINE) {
    int lane = (int)sim_lane();
    return sim_shuffle(mask, v, (lane & -width) | (source & (width - 1)), sim_line);
}
template <class T> SIM_FN T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32, SIM_LINE) {
    int lane = (int)sim_lane(), source = lane - (int)delta;
    return sim_shuffle(mask, v, source < (lane & -width) ? lane : source, sim_line);
}
template <class T> SIM_FN T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32, SIM_LINE) {
    int lane = (int)sim_lane(), source = lane + (int)delta;
    return sim_shuffle(mask, v, source >= (lane & -width) + width ? lane : source, sim_line);
}
template <class T> SIM_FN T __shfl_xor_sync(unsigned mask, T v, int lanes, int width = 32, SIM_LINE) {
    int lane = (int)sim_lane(), source = lane ^ lanes;
    return sim_shuffle(mask, v, source >= (lane & -width) + width ? lane : source, sim_line);
}

SIM_FN void __syncwarp(unsigned mask = 0xffffffffu, SIM_LINE) { sim_warp_op(SIM_WARP_SYNC, mask, 0, 0, sim_line); }
SIM_FN unsigned __ballot_sync(unsigned mask, int p, SIM_LINE) {
    return (unsigned)sim_warp_op(SIM_BALLOT, mask, p != 0, 0, sim_line);
}
SIM_FN int __any_sync(unsigned mask, int p, SIM_LINE) { return __ballot_sync(mask, p, sim_line) != 0; }
SIM_FN int __all_sync(unsigned mask, int p, SIM_LINE) { return __ballot_sync(mask, !p, sim_line) == 0; }
SIM_FN unsigned __activemask() { return sim_active_mask(); }
template <class T> SIM_FN unsigned __match_any_sync(unsigned mask, T v, SIM_LINE) {
    return (unsigned)sim_warp_op(SIM_MATCH_ANY, mask, sim_pack(v), 0, sim_line);
}
template <class T> SIM_FN unsigned __match_all_sync(unsigned mask, T v, int* equal, SIM_LINE) {
    unsigned lanes = (unsigned)sim_warp_op(SIM_MATCH_ALL, mask, sim_pack(v), 0, sim_line);
    *equal = lanes != 0;
    return lanes;
}

#define SIM_REDUCE(name, T, kind)                                            \
    SIM_FN T name(unsigned mask, T v, SIM_LINE) {                            \
        return (T)sim_warp_op(kind, mask, (unsigned)v, 0, sim_line);         \
    }
SIM_REDUCE(__reduce_add_sync, int, SIM_ADD_U32)
SIM_REDUCE(__reduce_add_sync, unsigned, SIM_ADD_U32)
SIM_REDUCE(__reduce_min_sync, int, SIM_MIN_S32)
SIM_REDUCE(__reduce_min_sync, unsigned, SIM_MIN_U32)
SIM_REDUCE(__reduce_max_sync, int, SIM_MAX_S32)
SIM_REDUCE(__reduce_max_sync, unsigned, SIM_MAX_U32)
SIM_REDUCE(__reduce_and_sync, unsigned, SIM_AND_U32)
SIM_REDUCE(__reduce_or_sync, unsigned, SIM_OR_U32)
SIM_REDUCE(__reduce_xor_sync, unsigned, SIM_XOR_U32)
