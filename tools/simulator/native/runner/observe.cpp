#include "observe.h"

#include "shadow.h"
#include "trace.h"

extern "C" char __executable_start, _end;

namespace sim {

bool is_runner_memory(uintptr_t address) {
    return address >= uintptr_t(&__executable_start) && address < uintptr_t(&_end);
}

bool prepare_observation() { return prepare_shadow() && prepare_trace(); }

void begin_launch() {
    shadow_begin_launch();
    trace_begin_launch();
}

void begin_block() {
    if (job->mode == Mode::check) shadow_begin_block();
    trace_begin_block();
}

void end_block() { trace_end_block(); }

void leave_warp(int warp_index) {
    if (tracing) trace_flush_warp(warp_index);
}

void note_warp_operation(int, int) {
    if (tracing) trace_warp_operation();
}

void note_barrier() {
    if (job->mode == Mode::check) shadow_barrier();
    if (tracing) trace_barrier();
}

}  // namespace sim
