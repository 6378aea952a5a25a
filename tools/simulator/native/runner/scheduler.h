// Runs the threads of a block in order, warp after warp, switching only where a thread has to wait.
#pragma once
#include "state.h"

namespace sim {

typedef void (*Entry)(void** args);

// Executes one block of the current launch to its end.
void run_block(Entry entry, void** args);

// Parks the current thread until another makes it ready again.
void wait_for_others();

// Completes barrier or warp groups that only waited for a thread that has now exited.
void release_barrier_if_complete();
void complete_groups_after_exit(Warp& warp, int warp_index);

[[noreturn]] void report_stall();

}  // namespace sim
