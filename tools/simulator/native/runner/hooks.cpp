// The functions that instrumented code calls on every load, store, atomic, bounds violation and basic block.
#include <cstdio>
#include <cstring>

#include "fibres.h"
#include "observe.h"
#include "shadow.h"
#include "trace.h"

namespace sim {

uintptr_t last_observed_pc;
bool tracing;  // this block's accesses feed the metrics

static void out_of_bounds(uintptr_t address, unsigned bytes, Access access, uintptr_t pc, int line, int place,
                          uintptr_t start, uint64_t size) {
    FindingRecord* f = add_finding(Kind::out_of_bounds, Severity::error, line, pc);
    if (f) {
        f->buffer = place;
        f->access_bytes = int(bytes);
        f->byte_offset = int64_t(address - start);
        snprintf(f->text, sizeof f->text, "%s of %u bytes at byte %lld of %llu bytes",
                 access == Access::load ? "read" : access == Access::store ? "write" : "atomic", bytes,
                 (long long)(address - start), (unsigned long long)size);
    }
    end_worker(Status::aborted);
}

static void misaligned(uintptr_t address, unsigned bytes, uintptr_t pc, int line, int place, uintptr_t start) {
    FindingRecord* f = add_finding(Kind::misaligned, Severity::error, line, pc);
    if (!f) return;
    f->buffer = place;
    f->access_bytes = int(bytes);
    f->byte_offset = int64_t(address - start);
    snprintf(f->text, sizeof f->text, "an access of %u bytes at byte %lld is not aligned to its size", bytes,
             (long long)f->byte_offset);
}

static void wild(uintptr_t address, unsigned bytes, Access access, uintptr_t pc, int line) {
    FindingRecord* f = add_finding(Kind::out_of_bounds, Severity::error, line, pc);
    if (f) {
        f->access_bytes = int(bytes);
        snprintf(f->text, sizeof f->text, "%s of %u bytes at 0x%llx, which is in no buffer",
                 access == Access::load ? "read" : "write", bytes, (unsigned long long)address);
    }
    end_worker(Status::aborted);
}

static void observe_shared(uintptr_t address, unsigned bytes, Access access, uintptr_t pc, int line) {
    uintptr_t start = 0;
    uint64_t size = 0;
    int place = shared_place(address, start, size);
    if (place == -1) return;  // a device variable or constant
    if (address + bytes > start + size) {
        // Beyond a static variable may lie a device variable; within the padding of shared ones it is an error.
        out_of_bounds(address, bytes, access, pc, line, place, start, size);
    }
    if (job->mode == Mode::check) check_shared(address, bytes, access, pc, line, place, start);
    if (tracing) trace_access(address - start + (place == -2 ? 0 : uintptr_t(start - library_base)), bytes, access, pc, -1);
}

// `whole` accesses must be aligned to their size; copies of packed structs and of bytes need not be.
static void observe(uintptr_t address, unsigned bytes, Access access, uintptr_t pc, int line, bool whole) {
    last_observed_pc = pc;
    if (address - stacks_begin < stacks_end - stacks_begin) return;  // local memory
    int buffer = buffer_at(address);
    if (buffer >= 0) {
        const Buffer& b = job->buffers[size_t(buffer)];
        uintptr_t start = uintptr_t(b.data);
        uint64_t offset = address - start;
        if (offset >= b.bytes || offset + bytes > b.bytes)
            out_of_bounds(address, bytes, access, pc, line, buffer, start, b.bytes);
        if (whole && address % bytes) misaligned(address, bytes, pc, line, buffer, start);
        if (tracing) trace_access(address, bytes, access, pc, buffer);
        return;
    }
    if (address >= library_base && address < library_end) { observe_shared(address, bytes, access, pc, line); return; }
    if (address - uintptr_t(sim_dynamic_shared) < 256 * 1024) { observe_shared(address, bytes, access, pc, line); return; }
    if (is_runner_memory(address)) return;  // thread indices and kernel arguments
    wild(address, bytes, access, pc, line);
}

}  // namespace sim

using namespace sim;

#pragma GCC visibility push(default)  // what libraries may link against
#define PC uintptr_t(__builtin_return_address(0))
#define HOOK(name, bytes, access, whole) \
    extern "C" void name(void* p) { observe(uintptr_t(p), bytes, access, PC, 0, whole); }
#define HOOKS(bytes)                                                        \
    HOOK(__tsan_read##bytes, bytes, Access::load, true)                     \
    HOOK(__tsan_write##bytes, bytes, Access::store, true)                   \
    HOOK(__tsan_volatile_read##bytes, bytes, Access::load, true)            \
    HOOK(__tsan_volatile_write##bytes, bytes, Access::store, true)          \
    HOOK(__tsan_unaligned_read##bytes, bytes, Access::load, false)          \
    HOOK(__tsan_unaligned_write##bytes, bytes, Access::store, false)        \
    HOOK(__tsan_unaligned_volatile_read##bytes, bytes, Access::load, false) \
    HOOK(__tsan_unaligned_volatile_write##bytes, bytes, Access::store, false)
HOOKS(1) HOOKS(2) HOOKS(4) HOOKS(8) HOOKS(16)

extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
extern "C" void __tsan_vptr_update(void**, void*) {}
extern "C" void __tsan_vptr_read(void**) {}

static void range(uintptr_t address, size_t bytes, Access access, uintptr_t pc) {
    for (size_t i = 0; i < bytes; i += 4) observe(address + i, bytes - i < 4 ? unsigned(bytes - i) : 4, access, pc, 0, false);
}
extern "C" void __tsan_read_range(void* p, unsigned long n) { range(uintptr_t(p), n, Access::load, PC); }
extern "C" void __tsan_write_range(void* p, unsigned long n) { range(uintptr_t(p), n, Access::store, PC); }

extern "C" void sim_atomic(const volatile void* p, int bytes, int line) {
    if (observing()) observe(uintptr_t(p), unsigned(bytes), Access::atomic, PC, line, true);
}

extern "C" void __sanitizer_cov_trace_pc() {
    last_observed_pc = PC;
    if (tracing) trace_basic_block(PC);
}

namespace {
struct TypeDescriptor { uint16_t kind, info; char name[1]; };
struct OutOfBoundsData { const char* file; uint32_t line, column; const TypeDescriptor *array, *index; };
}  // namespace

extern "C" void __ubsan_handle_out_of_bounds(OutOfBoundsData* data, uintptr_t value) {
    int64_t index = int64_t(value);
    unsigned bits = 1u << (data->index->info >> 1);
    if (data->index->info & 1 && bits < 64) index = int64_t(value << (64 - bits)) >> (64 - bits);
    FindingRecord* f = add_finding(Kind::out_of_bounds, Severity::error, int(data->line), PC);
    if (f) {
        f->access_bytes = 1;
        f->byte_offset = index;
        snprintf(f->text, sizeof f->text, "index %lld is outside %.80s", (long long)index, data->array->name);
    }
    end_worker(Status::aborted);
}
