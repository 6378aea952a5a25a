// Shared memory's shadow: who wrote and read each word since the last barrier, and whether it was written at all.
#pragma once
#include "observe.h"

namespace sim {

bool prepare_shadow();
void shadow_begin_launch();
void shadow_begin_block();
void shadow_barrier();

// Where an address in shared memory belongs: -2 dynamic, <= -3 static variable, -1 neither.
int shared_place(uintptr_t address, uintptr_t& start, uint64_t& bytes);

// Checks one access to shared memory for races and reads of unwritten words.
void check_shared(uintptr_t address, unsigned bytes, Access access, uintptr_t pc, int line, int place, uintptr_t start);

}  // namespace sim
