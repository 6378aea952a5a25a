// One worker: the process that loads the library and executes blocks.
#pragma once
#include "channel.h"
#include "job.h"

namespace sim {

// Runs the job's launches as worker `index`; never returns.
[[noreturn]] void work(const Job& job, Channel& channel, int index, uint64_t token, const Ledger& ledger);

// Blocks of a launch that this mode executes: all, or an even sample.
uint64_t planned_blocks(const Job& job, const Launch& launch);

extern Ledger ledger;

}  // namespace sim
