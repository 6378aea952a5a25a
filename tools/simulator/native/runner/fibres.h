// Stackful fibres: one per CUDA thread that blocks. A thread that never blocks costs no switch.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sim {

// Stack bytes usable by one CUDA thread; CUDA's own limit on local memory is 512 KB a thread.
constexpr size_t stack_bytes = 512 * 1024;
constexpr size_t guard_bytes = 4096;
constexpr int max_stacks = 1025;

extern "C" void sim_switch(void** save_sp, void* load_sp);

// Reserves address space for every stack; pages are committed on first touch.
bool reserve_stacks();

// Takes a stack that will call `entry` (which must never return) when switched to; its initial stack pointer.
void* take_stack(void (*entry)(), int& stack);

void give_stack_back(int stack);

extern uintptr_t stacks_begin, stacks_end;

// True where `address` is in a guard page below a stack.
bool is_stack_guard(uintptr_t address);

}  // namespace sim
