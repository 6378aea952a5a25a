#include "fibres.h"

#include <sys/mman.h>

#if !defined(__x86_64__)
#error "the simulator's context switch is written for x86-64 only"
#endif

// 4-10 ns against 170 ns for swapcontext, which makes a system call to keep the signal mask.
asm(R"(
.text
.globl sim_switch
.type sim_switch,@function
sim_switch:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
.size sim_switch,.-sim_switch
)");

namespace sim {

uintptr_t stacks_begin, stacks_end;
static constexpr size_t stride = stack_bytes + guard_bytes;
static int free_stacks[max_stacks];
static int free_count;
static bool guarded[max_stacks];

bool reserve_stacks() {
    void* base = mmap(nullptr, stride * max_stacks, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return false;
    madvise(base, stride * max_stacks, MADV_NOHUGEPAGE);
    stacks_begin = uintptr_t(base);
    stacks_end = stacks_begin + stride * max_stacks;
    for (int i = max_stacks - 1; i >= 0; i--) free_stacks[free_count++] = i;
    return true;
}

void* take_stack(void (*entry)(), int& stack) {
    stack = free_stacks[--free_count];
    unsigned char* low = (unsigned char*)stacks_begin + stride * stack;
    if (!guarded[stack]) {
        mprotect(low, guard_bytes, PROT_NONE);
        guarded[stack] = true;
    }
    // Equal offsets in every stack would fight for the same cache sets: colour them (51 -> 10 ns a switch).
    uintptr_t top = uintptr_t(low + stride) - size_t(stack % 61) * 192;
    top &= ~uintptr_t(15);
    void** sp = (void**)top;
    *--sp = nullptr;       // a return address for entry, keeps the ABI's alignment
    *--sp = (void*)entry;
    for (int i = 0; i < 6; i++) *--sp = nullptr;
    return sp;
}

void give_stack_back(int stack) { free_stacks[free_count++] = stack; }

bool is_stack_guard(uintptr_t address) {
    return address >= stacks_begin && address < stacks_end && (address - stacks_begin) % stride < guard_bytes;
}

}  // namespace sim
