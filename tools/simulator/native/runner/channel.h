// What workers tell the supervisor: one shared mapping, fixed-size records, no system calls needed to write it.
//
// A worker runs user code in the same address space, so these pages are writable by that code. Success is
// therefore never the default: a launch counts as done only where the worker stored the run's random token, and
// every other way a worker can end (exit(0) included) is a crash.
#pragma once
#include <atomic>
#include <cstdint>

namespace sim {

enum class Status : int { none, ok, crashed, timed_out, out_of_memory, bad_launch, aborted };
enum class Kind : int {
    out_of_bounds, race, uninitialised_shared, divergent_barrier, shuffle_fault, deadlock, read_only_write,
    assertion, misaligned, stack_overflow
};
enum class Severity : int { error, warning };

struct FindingRecord {
    Kind kind;
    Severity severity;
    int launch;
    int line;            // 0 where only the program counter is known
    uint64_t pc;         // offset in the library, 0 where unknown
    int buffer;          // >= 0 arena buffer, -1 none, -2 dynamic shared, <= -3 static shared variable (-3 - i)
    int access_bytes;
    int64_t byte_offset; // from the buffer's first byte
    unsigned block[3], thread[3];
    uint64_t detail;     // kind specific: lane mask, other thread
    uint64_t other_pc;   // of a race's earlier access, offset in the library; 0 where unknown
    char text[160];
};

constexpr int max_findings = 64;
constexpr int max_workers = 16;
constexpr int max_launches = 4096;
constexpr int max_text = 16384;

// Totals over the blocks a worker traced, unscaled. The order is the one decode.py reads.
struct Counters {
    double blocks, load_sectors, load_requests, store_sectors, store_requests, l2_load_sectors;
    double shared_load_wavefronts, shared_store_wavefronts, shared_load_requests, shared_store_requests;
    double bank_conflicts, atomics, atomic_sectors, atomic_conflicts, shared_atomics, barriers, warp_operations;
    double warps, dependent_loads, truncated, global_lines;
};

// Sectors of one buffer that missed L1: how many in all, how many different ones.
struct Traffic {
    double load_total, load_distinct, store_total, store_distinct;
};

struct BlockCount {  // executions, by threads, of the basic block whose hook returns to `pc`
    uint64_t pc, count;
};
constexpr int max_blocks_counted = 8192;

// A worker's share of the metrics, indexed by launch: shared with the supervisor, untouched pages cost nothing.
struct Ledger {
    Counters* counters;   // [launches]
    Traffic* traffic;     // [launches][buffers]
    BlockCount* counts;   // [launches][max_blocks_counted]
};

struct WorkerSlot {
    std::atomic<int> status;
    std::atomic<int> launch;
    uint64_t token;
    int signal;
    uint64_t pc;
    uint64_t address;
    char message[256];
};

struct Channel {
    std::atomic<uint64_t> next_block[max_launches];
    std::atomic<int> arrived[max_launches];  // workers done with launch i
    std::atomic<int> findings;               // may exceed max_findings; the rest is dropped
    FindingRecord finding[max_findings];
    WorkerSlot worker[max_workers];
    std::atomic<int> text_bytes;
    char text[max_text];  // captured printf output
};

}  // namespace sim
