// Metrics: groups the lanes' accesses into warp-wide requests and counts sectors, wavefronts and traffic.
#pragma once
#include "observe.h"

namespace sim {

bool prepare_trace();
void trace_begin_launch();
void trace_begin_block();
void trace_end_block();
void trace_flush_warp(int warp_index);
void trace_barrier();
void trace_warp_operation();

// One lane's access: `buffer` >= 0 is global memory, -1 shared memory at byte `address`.
void trace_access(uintptr_t address, unsigned bytes, Access access, uintptr_t pc, int buffer);
void trace_basic_block(uintptr_t pc);

extern bool tracing;
bool is_runner_memory(uintptr_t address);

}  // namespace sim
