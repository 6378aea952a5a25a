#include "faults.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>

#include "fibres.h"
#include "state.h"

namespace sim {

// One past the instruction, as hooks report return addresses.
static uintptr_t program_counter(void* context) {
    return uintptr_t(((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP]) + 1;
}

// The parent knows the library by offsets, not by addresses.
static uint64_t library_offset(uintptr_t pc) {
    return pc >= library_base && pc < library_end ? pc - library_base : 0;
}

static bool was_write(void* context) { return ((ucontext_t*)context)->uc_mcontext.gregs[REG_ERR] & 2; }

static void report_buffer_fault(int buffer, uintptr_t address, uintptr_t pc, bool write) {
    const Buffer& b = job->buffers[size_t(buffer)];
    int64_t offset = int64_t(address - uintptr_t(b.data));
    bool inside = offset >= 0 && uint64_t(offset) < b.bytes;
    Kind kind = inside && !b.writable ? Kind::read_only_write : Kind::out_of_bounds;
    FindingRecord* f = add_finding(kind, Severity::error, 0, pc);
    if (!f) return;
    f->buffer = buffer;
    f->byte_offset = offset;
    snprintf(f->text, sizeof f->text, "%s at byte %lld of a buffer of %llu bytes", write ? "write" : "read",
             (long long)offset, (unsigned long long)b.bytes);
}

static bool memory_is_exhausted() {
    void* probe = mmap(nullptr, job->memory_limit / 4, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return probe == MAP_FAILED;
}

static void on_fault(int number, siginfo_t* info, void* context) {
    uintptr_t address = uintptr_t(info->si_addr), pc = program_counter(context);
    slot->signal = number;
    slot->pc = library_offset(pc);
    slot->address = address;
    if (number == SIGSEGV || number == SIGBUS) {
        if (is_stack_guard(address)) {
            add_finding(Kind::stack_overflow, Severity::error, 0, pc);
            snprintf(slot->message, sizeof slot->message, "stack overflow: a thread needs more than %zu KB of local memory",
                     stack_bytes / 1024);
            end_worker(Status::crashed);
        }
        int buffer = buffer_at(address);
        if (buffer >= 0) {
            report_buffer_fault(buffer, address, pc, was_write(context));
            end_worker(Status::aborted);
        }
        if (address < 65536 && memory_is_exhausted()) {
            snprintf(slot->message, sizeof slot->message, "memory limit reached: an allocation failed");
            end_worker(Status::out_of_memory);
        }
    }
    if (number == SIGSEGV && info->si_code == SI_KERNEL) {
        snprintf(slot->message, sizeof slot->message, "misaligned vector access, or an address that cannot exist");
        end_worker(Status::crashed);
    }
    snprintf(slot->message, sizeof slot->message, "signal %d at address 0x%llx", number, (unsigned long long)address);
    end_worker(Status::crashed);
}

static void on_blocked_call(int, siginfo_t* info, void* context) {
    slot->signal = SIGSYS;
    slot->pc = library_offset(program_counter(context));
    if (info->si_syscall == 9) {  // mmap: only an oversized or executable mapping is refused
        snprintf(slot->message, sizeof slot->message, "memory limit reached: a mapping was refused");
        end_worker(Status::out_of_memory);
    }
    snprintf(slot->message, sizeof slot->message, "system call %d is not allowed in a kernel", info->si_syscall);
    end_worker(Status::crashed);
}

static void on_deadline(int number, siginfo_t*, void* context) {
    slot->signal = number;
    // An observed run spends its time in hooks and their jump table, which have no line: the latest hook has one.
    slot->pc = library_offset(observing() && last_observed_pc ? last_observed_pc : program_counter(context));
    end_worker(Status::timed_out);
}

static bool handle(int number, void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action{};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    return sigaction(number, &action, nullptr) == 0;
}

bool install_fault_handlers() {
    constexpr size_t bytes = 64 * 1024;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    stack_t alternate{};
    alternate.ss_sp = memory;
    alternate.ss_size = bytes;
    if (sigaltstack(&alternate, nullptr)) return false;
    bool ok = true;
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) ok &= handle(number, on_fault);
    return ok && handle(SIGSYS, on_blocked_call) && handle(SIGXCPU, on_deadline);
}

}  // namespace sim
