// What instrumented runs see: called by the scheduler, and by the hooks that GCC's instrumentation inserts.
#pragma once
#include "state.h"

namespace sim {

bool prepare_observation();  // once per worker, before user code
void begin_launch();
void begin_block();
void end_block();
void leave_warp(int warp_index);
void note_warp_operation(int warp_index, int kind);
void note_barrier();

enum class Access { load, store, atomic };

}  // namespace sim
