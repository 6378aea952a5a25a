// Barriers and warp operations: the calls where a thread waits for others.
#include <cstdio>
#include <cstring>

#include "../abi.h"
#include "observe.h"
#include "scheduler.h"

namespace sim {

static uint64_t reduce(int kind, unsigned lanes, int base) {
    bool first = true;
    uint32_t acc = 0;
    for (unsigned m = lanes; m; m &= m - 1) {
        uint32_t v = uint32_t(block.thread[base + __builtin_ctz(m)].value);
        if (first) { acc = v; first = false; continue; }
        switch (kind) {
            case SIM_ADD_U32: acc += v; break;
            case SIM_MIN_S32: acc = int32_t(v) < int32_t(acc) ? v : acc; break;
            case SIM_MIN_U32: acc = v < acc ? v : acc; break;
            case SIM_MAX_S32: acc = int32_t(v) > int32_t(acc) ? v : acc; break;
            case SIM_MAX_U32: acc = v > acc ? v : acc; break;
            case SIM_AND_U32: acc &= v; break;
            case SIM_OR_U32: acc |= v; break;
            default: acc ^= v; break;
        }
    }
    return acc;
}

static void shuffle_fault(int t, unsigned group_mask, int source) {
    int self = block.current;
    block.current = t;
    FindingRecord* f = add_finding(Kind::shuffle_fault, Severity::error, block.thread[t].line, 0);
    if (f) {
        f->detail = uint64_t(source);
        snprintf(f->text, sizeof f->text, "lane %d reads lane %d, which takes no part (mask 0x%08x): the value is undefined",
                 t % warp_lanes, source, group_mask);
    }
    block.current = self;
}

static void shuffle(const WarpGroup& group, int base) {
    for (unsigned m = group.arrived; m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        Thread& thread = block.thread[base + lane];
        int source = thread.argument;
        if (group.arrived >> source & 1) thread.result = block.thread[base + source].value;
        else {
            shuffle_fault(base + lane, group.mask, source);
            thread.result = 0x7fc000007fc00000ull;  // NaN: a wrong answer must not look right
        }
    }
}

static void match(const WarpGroup& group, int base) {
    for (unsigned m = group.arrived; m; m &= m - 1) {
        Thread& thread = block.thread[base + __builtin_ctz(m)];
        unsigned equal = 0;
        for (unsigned o = group.arrived; o; o &= o - 1) {
            int lane = __builtin_ctz(o);
            if (block.thread[base + lane].value == thread.value) equal |= 1u << lane;
        }
        thread.result = group.kind == SIM_MATCH_ALL && equal != group.arrived ? 0 : equal;
    }
}

static void complete(Warp& warp, int warp_index, int g) {
    const WarpGroup group = warp.group[g];
    int base = warp_index * warp_lanes;
    if (group.kind == SIM_SHUFFLE) shuffle(group, base);
    else if (group.kind == SIM_MATCH_ANY || group.kind == SIM_MATCH_ALL) match(group, base);
    else if (group.kind != SIM_WARP_SYNC) {
        uint64_t result = 0;
        if (group.kind == SIM_BALLOT) {
            for (unsigned m = group.arrived; m; m &= m - 1) {
                int lane = __builtin_ctz(m);
                if (block.thread[base + lane].value) result |= 1ull << lane;
            }
        } else result = reduce(group.kind, group.arrived, base);
        for (unsigned m = group.arrived; m; m &= m - 1) block.thread[base + __builtin_ctz(m)].result = result;
    }
    warp.clock++;
    for (unsigned m = group.arrived; m; m &= m - 1) block.thread[base + __builtin_ctz(m)].clock = warp.clock;
    warp.ready |= group.arrived;
    warp.group[g] = warp.group[--warp.group_count];
    if (observing()) note_warp_operation(warp_index, group.kind);
}

void complete_groups_after_exit(Warp& warp, int warp_index) {
    for (int g = warp.group_count - 1; g >= 0; g--)
        if (!(warp.group[g].mask & ~(warp.group[g].arrived | warp.exited))) complete(warp, warp_index, g);
}

static void check_barrier_lines() {
    int first_line = 0;
    for (int w = 0; w < block.warps; w++) {
        int warp_line = 0;
        for (unsigned m = block.warp[w].at_barrier; m; m &= m - 1) {
            int t = w * warp_lanes + __builtin_ctz(m);
            int line = block.thread[t].line;
            if (!warp_line) warp_line = line;
            if (!first_line) first_line = line;
            if (line == first_line && line == warp_line) continue;
            int self = block.current;
            block.current = t;
            bool in_warp = line != warp_line;
            FindingRecord* f = add_finding(Kind::divergent_barrier, in_warp ? Severity::error : Severity::warning, line, 0);
            if (f) snprintf(f->text, sizeof f->text, "threads of one %s wait at different barriers: lines %d and %d",
                            in_warp ? "warp" : "block", in_warp ? warp_line : first_line, line);
            block.current = self;
            return;
        }
    }
}

static void report_exited_at_barrier() {
    for (int w = 0; w < block.warps; w++) {
        if (!block.warp[w].at_barrier) continue;
        int t = w * warp_lanes + __builtin_ctz(block.warp[w].at_barrier);
        int self = block.current;
        block.current = t;
        FindingRecord* f = add_finding(Kind::divergent_barrier, Severity::error, block.thread[t].line, 0);
        if (f) snprintf(f->text, sizeof f->text, "%d of %d threads had returned when the others reached this barrier",
                        block.exited, block.threads);
        block.current = self;
        return;
    }
}

void release_barrier_if_complete() {
    if (block.waiting + block.exited != block.threads) return;
    if (block.exited) report_exited_at_barrier();
    check_barrier_lines();
    block.barrier_result = block.barrier_kind == SIM_BARRIER_AND ? block.barrier_count == block.waiting
                           : block.barrier_kind == SIM_BARRIER_OR ? block.barrier_count > 0
                                                                  : uint64_t(block.barrier_count);
    for (int w = 0; w < block.warps; w++) {
        Warp& warp = block.warp[w];
        for (unsigned m = warp.at_barrier; m; m &= m - 1)
            block.thread[w * warp_lanes + __builtin_ctz(m)].result = block.barrier_result;
        warp.ready |= warp.at_barrier;
        warp.at_barrier = 0;
    }
    block.waiting = 0;
    block.barrier_count = 0;
    if (observing()) note_barrier();
    block.epoch++;
}

}  // namespace sim

using namespace sim;

#pragma GCC visibility push(default)  // what libraries may link against
extern "C" int sim_barrier(int kind, int predicate, int line) {
    int t = block.current;
    if (!block.waiting) block.barrier_count = 0;
    block.thread[t].line = line;
    block.barrier_kind = kind;
    block.barrier_count += predicate != 0;
    block.waiting++;
    block.warp[t / warp_lanes].at_barrier |= 1u << (t % warp_lanes);
    release_barrier_if_complete();
    wait_for_others();
    return int(block.thread[t].result);
}

extern "C" uint64_t sim_warp_op(int kind, unsigned mask, uint64_t value, int argument, int line) {
    int t = block.current, lane = t % warp_lanes, w = t / warp_lanes;
    Warp& warp = block.warp[w];
    Thread& thread = block.thread[t];
    thread.line = line;
    mask &= warp.present;
    if (!(mask >> lane & 1)) {
        FindingRecord* f = add_finding(Kind::shuffle_fault, Severity::error, line, 0);
        if (f) snprintf(f->text, sizeof f->text, "lane %d calls a warp operation whose mask 0x%08x leaves it out", lane, mask);
        mask |= 1u << lane;
    }
    thread.value = value;
    thread.argument = argument & 31;
    int g = 0;
    while (g < warp.group_count && (warp.group[g].mask != mask || warp.group[g].kind != kind)) g++;
    if (g == warp.group_count) warp.group[warp.group_count++] = WarpGroup{mask, 0, kind};
    warp.group[g].arrived |= 1u << lane;
    if (!(mask & ~(warp.group[g].arrived | warp.exited))) {
        complete(warp, w, g);
        warp.ready &= ~(1u << lane);
        return thread.result;
    }
    wait_for_others();
    return thread.result;
}

extern "C" unsigned sim_active_mask() {
    // Lanes that could run together with the caller: all that neither exited nor wait elsewhere.
    const Warp& warp = block.warp[block.current / warp_lanes];
    unsigned waiting = warp.at_barrier;
    for (int g = 0; g < warp.group_count; g++) waiting |= warp.group[g].arrived;
    return warp.present & ~(warp.exited | waiting);
}

extern "C" unsigned sim_lane() { return unsigned(block.current) % warp_lanes; }
