#include "scheduler.h"

#include <cstdio>
#include <cstring>

#include "fibres.h"
#include "observe.h"

sim::Dim3 sim_thread_idx, sim_block_idx, sim_block_dim, sim_grid_dim;

namespace sim {

Block block;
static void* host_sp;
static Entry block_entry;
static void** block_args;
static int running_warp;

static void set_current(int t) {
    block.current = t;
    unsigned x = sim_block_dim.x, y = sim_block_dim.y, u = unsigned(t);
    if (y == 1 && sim_block_dim.z == 1) { sim_thread_idx = {u, 0, 0}; return; }
    unsigned row = u / x;
    sim_thread_idx = {u % x, row % y, row / y};
}

// The next thread to run, or -1 when none can: lanes of the running warp first, then the following warps.
static int pick_next() {
    int w = running_warp;
    for (int step = 0; step <= block.warps; step++) {
        Warp& warp = block.warp[w];
        unsigned candidates = warp.ready ? warp.ready : warp.unstarted;
        if (candidates) {
            int lane = __builtin_ctz(candidates);
            warp.ready &= ~(1u << lane);
            running_warp = w;
            return w * warp_lanes + lane;
        }
        if (step == 0 && observing()) leave_warp(w);
        if (++w == block.warps) w = 0;
    }
    return -1;
}

static void thread_exits(int t) {
    Warp& warp = block.warp[t / warp_lanes];
    warp.exited |= 1u << (t % warp_lanes);
    block.exited++;
    if (warp.group_count) complete_groups_after_exit(warp, t / warp_lanes);
    if (block.waiting) release_barrier_if_complete();
}

static int current_stack_owner;

static void fibre_main() {
    int stack = current_stack_owner;
    int t = block.current;
    for (;;) {
        block.thread[t].stack = stack;
        block_entry(block_args);
        t = block.current;
        thread_exits(t);
        int next = pick_next();
        void* discard;
        if (next < 0) {
            if (block.exited != block.threads) report_stall();
            give_stack_back(stack);
            sim_switch(&discard, host_sp);
        }
        set_current(next);
        Warp& warp = block.warp[next / warp_lanes];
        unsigned bit = 1u << (next % warp_lanes);
        if (warp.unstarted & bit) {  // reuse this stack: the common, switch-free path
            warp.unstarted &= ~bit;
            t = next;
            continue;
        }
        give_stack_back(stack);
        sim_switch(&discard, block.thread[next].sp);
    }
}

static void* start_thread(int t) {
    block.warp[t / warp_lanes].unstarted &= ~(1u << (t % warp_lanes));
    int stack;
    void* sp = take_stack(fibre_main, stack);
    current_stack_owner = stack;
    return sp;
}

void wait_for_others() {
    int self = block.current;
    int next = pick_next();
    if (next < 0) report_stall();
    if (next == self) { set_current(self); return; }
    set_current(next);
    bool fresh = block.warp[next / warp_lanes].unstarted >> (next % warp_lanes) & 1;
    void* sp = fresh ? start_thread(next) : block.thread[next].sp;
    sim_switch(&block.thread[self].sp, sp);
}

void run_block(Entry entry, void** args) {
    block_entry = entry;
    block_args = args;
    block.exited = block.waiting = 0;
    block.epoch = 0;
    block.threads = int(launch->threads());
    block.warps = (block.threads + warp_lanes - 1) / warp_lanes;
    for (int w = 0; w < block.warps; w++) {
        Warp& warp = block.warp[w];
        int lanes = block.threads - w * warp_lanes;
        warp.present = lanes >= warp_lanes ? ~0u : (1u << lanes) - 1;
        warp.unstarted = warp.present;
        warp.ready = warp.exited = warp.at_barrier = warp.clock = 0;
        warp.group_count = 0;
    }
    if (observing()) begin_block();
    for (int t = 0; t < block.threads; t++) block.thread[t].clock = 0;
    running_warp = 0;
    set_current(0);
    sim_switch(&host_sp, start_thread(0));
    if (observing()) end_block();
}

// Nothing can run: somebody waits for lanes or threads that will never come.
void report_stall() {
    for (int w = 0; w < block.warps; w++) {
        Warp& warp = block.warp[w];
        for (int g = 0; g < warp.group_count; g++) {
            const WarpGroup& group = warp.group[g];
            int waiting = w * warp_lanes + __builtin_ctz(group.arrived);
            block.current = waiting;
            set_current(waiting);
            FindingRecord* f = add_finding(Kind::shuffle_fault, Severity::error, block.thread[waiting].line, 0);
            if (f) {
                f->detail = group.mask & ~(group.arrived | warp.exited);
                snprintf(f->text, sizeof f->text,
                         "deadlock: mask 0x%08x names lanes 0x%08x that never reach this warp operation",
                         group.mask, unsigned(f->detail));
            }
            end_worker(Status::aborted);
        }
    }
    for (int t = 0; t < block.threads; t++) {
        if (!(block.warp[t / warp_lanes].at_barrier >> (t % warp_lanes) & 1)) continue;
        set_current(t);
        FindingRecord* f = add_finding(Kind::deadlock, Severity::error, block.thread[t].line, 0);
        if (f) snprintf(f->text, sizeof f->text, "%d of %d threads wait at a barrier for ever", block.waiting, block.threads);
        break;
    }
    end_worker(Status::aborted);
}

}  // namespace sim
