// The part of cooperative groups that kernels commonly use: the block, and tiles of a warp.
#pragma once

namespace cooperative_groups {

struct thread_block {
    static SIM_FN void sync(SIM_LINE) { sim_barrier(SIM_BARRIER, 0, sim_line); }
    static SIM_FN unsigned thread_rank() {
        return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    }
    static SIM_FN unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
    static SIM_FN unsigned num_threads() { return size(); }
    static SIM_FN dim3 group_index() { return dim3(blockIdx); }
    static SIM_FN dim3 thread_index() { return dim3(threadIdx); }
};
SIM_FN thread_block this_thread_block() { return {}; }

template <unsigned N, class Parent = void> struct thread_block_tile {
    static SIM_FN unsigned thread_rank() { return sim_lane() % N; }
    static SIM_FN unsigned meta_group_rank() { return thread_block::thread_rank() / N; }
    static SIM_FN unsigned meta_group_size() { return (thread_block::size() + N - 1) / N; }
    static SIM_FN constexpr unsigned size() { return N; }
    static SIM_FN constexpr unsigned num_threads() { return N; }
    static SIM_FN unsigned mask() { return N == 32 ? ~0u : ((1u << (N & 31)) - 1) << (sim_lane() / N * N); }
    SIM_FN void sync(SIM_LINE) const { __syncwarp(mask(), sim_line); }
    template <class T> SIM_FN T shfl(T v, int lane, SIM_LINE) const { return __shfl_sync(mask(), v, lane, N, sim_line); }
    template <class T> SIM_FN T shfl_up(T v, unsigned d, SIM_LINE) const { return __shfl_up_sync(mask(), v, d, N, sim_line); }
    template <class T> SIM_FN T shfl_down(T v, unsigned d, SIM_LINE) const { return __shfl_down_sync(mask(), v, d, N, sim_line); }
    template <class T> SIM_FN T shfl_xor(T v, int d, SIM_LINE) const { return __shfl_xor_sync(mask(), v, d, N, sim_line); }
    SIM_FN unsigned ballot(int p, SIM_LINE) const { return __ballot_sync(mask(), p, sim_line) >> (sim_lane() / N * N); }
    SIM_FN int any(int p, SIM_LINE) const { return __any_sync(mask(), p, sim_line); }
    SIM_FN int all(int p, SIM_LINE) const { return __all_sync(mask(), p, sim_line); }
};

template <unsigned N, class G> SIM_FN thread_block_tile<N> tiled_partition(const G&) { return {}; }
template <class G> SIM_FN void sync(const G& g, SIM_LINE) { g.sync(sim_line); }

template <class T> struct plus { SIM_FN T operator()(T a, T b) const { return a + b; } };
template <class T> struct less { SIM_FN T operator()(T a, T b) const { return b < a ? b : a; } };
template <class T> struct greater { SIM_FN T operator()(T a, T b) const { return a < b ? b : a; } };
template <unsigned N, class T, class F> SIM_FN T reduce(const thread_block_tile<N>& tile, T v, F f, SIM_LINE) {
    for (unsigned d = N / 2; d; d /= 2) v = f(v, tile.shfl_xor(v, int(d), sim_line));
    return v;
}

}  // namespace cooperative_groups
