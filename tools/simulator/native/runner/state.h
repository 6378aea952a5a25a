// The state of the block a worker is executing, shared by scheduler, warp operations, hooks and fault handler.
#pragma once
#include <cstdint>

#include "channel.h"
#include "job.h"

namespace sim {

struct Dim3 { unsigned x, y, z; };

constexpr int max_threads = 1024;
constexpr int warp_lanes = 32;

struct Thread {
    void* sp;
    int stack;          // -1 until the thread first ran
    uint64_t result;    // of the last warp operation
    uint64_t value;     // deposited for the pending warp operation
    int argument;       // source lane of a shuffle
    int line;           // where it waits
    unsigned clock;     // warp synchronisations this lane took part in
};

struct WarpGroup {  // lanes waiting in one warp operation
    unsigned mask, arrived;
    int kind;
};

struct Warp {
    unsigned present, ready, unstarted, exited, at_barrier;
    unsigned clock;
    int group_count;
    WarpGroup group[warp_lanes];
};

struct Block {
    int threads, warps;
    int current;        // thread index that runs now
    int exited, waiting;
    unsigned epoch;     // barriers passed
    int barrier_kind, barrier_count;
    uint64_t barrier_result;
    unsigned index[3];
    Thread thread[max_threads];
    Warp warp[max_threads / warp_lanes];
};

extern Block block;
extern const Job* job;
extern Channel* channel;
extern WorkerSlot* slot;
extern int launch_index;
extern const Launch* launch;
extern uintptr_t library_base, library_end;
extern uintptr_t last_observed_pc;  // of the latest hook, for timeouts that fall into one

// Where buffers live: slot i of 64 GB, data in its middle, so that any plausible index error still names its buffer.
constexpr uintptr_t slots_begin = 0x100000000000ull;
constexpr int slot_shift = 36;
constexpr uintptr_t slot_middle = 1ull << 34;
constexpr int max_buffers = 900;

inline int buffer_at(uintptr_t address) {
    if (address < slots_begin) return -1;
    uintptr_t index = (address - slots_begin) >> slot_shift;
    return index < job->buffers.size() ? int(index) : -1;
}

// Records a finding at the current thread; `pc` is an absolute address or 0.
FindingRecord* add_finding(Kind kind, Severity severity, int line, uintptr_t pc);

// Ends the worker: the finding or message already stored says why.
[[noreturn]] void end_worker(Status status);

inline bool observing() { return job->mode != Mode::plain; }

}  // namespace sim

#pragma GCC visibility push(default)  // libraries read these
extern "C" {
extern sim::Dim3 sim_thread_idx, sim_block_idx, sim_block_dim, sim_grid_dim;
extern unsigned char sim_dynamic_shared[];
}
#pragma GCC visibility pop
