// What reaches L2 and DRAM: an L1 of one block, replayed in the order warps would take turns, and footprints.
#pragma once
#include "observe.h"

namespace sim {

constexpr uint64_t sample_run = 4;  // neighbouring blocks sampled together

bool prepare_cache();
void cache_begin_launch();
void cache_begin_block(uint64_t index);

// Remembers one warp-wide request; `sectors` are address / 32, ascending.
void queue_request(int warp_index, Access access, int buffer, const uint64_t* sectors, int count);

// Sends the queued requests through L1, one of each warp in turn: replaying warp after warp gave 16 to 130 times
// wrong L2 traffic, as neighbours' reuse was never close in time.
void replay_requests();

}  // namespace sim
