#include "worker.h"

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "faults.h"
#include "fibres.h"
#include "observe.h"
#include "sandbox.h"
#include "scheduler.h"

constexpr size_t dynamic_shared_bytes = 256 * 1024;
alignas(4096) unsigned char sim_dynamic_shared[dynamic_shared_bytes + 4096];

namespace sim {

const Job* job;
Channel* channel;
WorkerSlot* slot;
int launch_index;
const Launch* launch;
uintptr_t library_base, library_end;
Ledger ledger;

void end_worker(Status status) {
    slot->status.store(int(status));
    _exit(status == Status::ok ? 0 : 1);
}

[[noreturn]] static void fail(Status status, const char* format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(slot->message, sizeof slot->message, format, args);
    va_end(args);
    end_worker(status);
}

FindingRecord* add_finding(Kind kind, Severity severity, int line, uintptr_t pc) {
    uint64_t offset = pc >= library_base && pc < library_end ? pc - library_base : 0;
    int known = channel->findings.load();
    for (int i = 0; i < known && i < max_findings; i++) {
        const FindingRecord& f = channel->finding[i];
        if (f.kind == kind && f.launch == launch_index && f.line == line && f.pc == offset) return nullptr;
    }
    int i = channel->findings.fetch_add(1);
    if (i >= max_findings) return nullptr;
    FindingRecord& f = channel->finding[i];
    f = FindingRecord{};
    f.kind = kind;
    f.severity = severity;
    f.launch = launch_index;
    f.line = line;
    f.pc = offset;
    f.buffer = -1;
    memcpy(f.block, &sim_block_idx, sizeof f.block);
    memcpy(f.thread, &sim_thread_idx, sizeof f.thread);
    return &f;
}

static void map_buffers(Job& mutable_job) {
    for (size_t i = 0; i < mutable_job.buffers.size(); i++) {
        Buffer& b = mutable_job.buffers[i];
        void* want = (void*)(slots_begin + (uintptr_t(i) << slot_shift) + slot_middle);
        void* got = mmap(want, b.section_bytes, b.writable ? PROT_READ | PROT_WRITE : PROT_READ,
                         MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, mutable_job.arena_fd, off_t(b.section_offset));
        if (got != want) fail(Status::bad_launch, "cannot map buffer %zu of %llu bytes", i, (unsigned long long)b.bytes);
        b.data = (unsigned char*)got + b.data_offset;
    }
    close(mutable_job.arena_fd);
}

static void* load_library() {
    void* handle = dlopen(job->library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char* why = dlerror();
        bool memory = why && (strstr(why, "cannot allocate") || strstr(why, "failed to map") || strstr(why, "cannot map"));
        fail(memory ? Status::out_of_memory : Status::bad_launch, "cannot load the kernels: %s", why ? why : "unknown");
    }
    link_map* map;
    dlinfo(handle, RTLD_DI_LINKMAP, &map);
    library_base = map->l_addr;
    library_end = library_base + 1;
    dl_iterate_phdr([](dl_phdr_info* info, size_t, void*) {
        if (info->dlpi_addr != library_base) return 0;
        for (int i = 0; i < info->dlpi_phnum; i++) {
            uintptr_t end = library_base + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
            if (info->dlpi_phdr[i].p_type == PT_LOAD && end > library_end) library_end = end;
        }
        return 1;
    }, nullptr);
    return handle;
}

struct EntryInfo {
    Entry call;
    int arguments;
    const int* sizes;
};

static EntryInfo find_entry(void* handle, int index) {
    char name[48];
    snprintf(name, sizeof name, "sim_entry_%d", index);
    Entry call = Entry(dlsym(handle, name));
    snprintf(name, sizeof name, "sim_arity_%d", index);
    const int* arity = (const int*)dlsym(handle, name);
    snprintf(name, sizeof name, "sim_sizes_ptr_%d", index);
    const int* const* sizes = (const int* const*)dlsym(handle, name);
    if (!call || !arity || !sizes) fail(Status::bad_launch, "entry %d is missing from the library", index);
    return {call, *arity, *sizes};
}

// Argument storage of one launch, laid out as the entry wrapper expects: an array of pointers to values.
struct ArgumentBlock {
    void* pointer[128];
    alignas(16) unsigned char value[128][64];
};
static ArgumentBlock arguments;

static void bind_arguments(const EntryInfo& entry) {
    if (size_t(entry.arguments) != launch->args.size())
        fail(Status::bad_launch, "kernel takes %d arguments, the launch passes %zu", entry.arguments, launch->args.size());
    if (entry.arguments > 128) fail(Status::bad_launch, "kernel takes %d arguments; at most 128 are supported", entry.arguments);
    for (size_t i = 0; i < launch->args.size(); i++) {
        const Argument& a = launch->args[i];
        // A negative size marks a pointer parameter.
        bool pointer = entry.sizes[i] < 0;
        if (pointer && !a.is_buffer) {
            uint64_t bits = 0;
            if (a.scalar.size() == 8) memcpy(&bits, a.scalar.data(), 8);
            if (bits || a.scalar.size() != 8) fail(Status::bad_launch, "argument %zu: the kernel takes a pointer, the launch passes a scalar", i);
        }
        if (!pointer && a.is_buffer) fail(Status::bad_launch, "argument %zu: the kernel takes a scalar, the launch passes a buffer", i);
        if (!pointer && int(a.scalar.size()) != entry.sizes[i])
            fail(Status::bad_launch, "argument %zu: the kernel takes %d bytes, the launch passes %zu", i, entry.sizes[i], a.scalar.size());
        arguments.pointer[i] = arguments.value[i];
        if (a.is_buffer) memcpy(arguments.value[i], &job->buffers[size_t(a.buffer)].data, 8);
        else memcpy(arguments.value[i], a.scalar.data(), a.scalar.size());
    }
}

static void check_shape() {
    const unsigned *g = launch->grid, *b = launch->block;
    if (!b[0] || !b[1] || !b[2] || b[0] > 1024 || b[1] > 1024 || b[2] > 64 || launch->threads() > 1024)
        fail(Status::bad_launch, "block (%u, %u, %u) is not between 1 and 1024 threads", b[0], b[1], b[2]);
    if (!g[0] || !g[1] || !g[2] || g[0] > 2147483647u || g[1] > 65535 || g[2] > 65535)
        fail(Status::bad_launch, "grid (%u, %u, %u) is outside CUDA's limits", g[0], g[1], g[2]);
    if (launch->shared_bytes > dynamic_shared_bytes)
        fail(Status::bad_launch, "%llu bytes of dynamic shared memory exceed 256 KB", (unsigned long long)launch->shared_bytes);
}

// Overruns of dynamic shared memory by a page or more stop even an uninstrumented run.
static void fence_dynamic_shared() {
    uint64_t used = (launch->shared_bytes + 4095) & ~4095ull;
    mprotect(sim_dynamic_shared, used, PROT_READ | PROT_WRITE);
    mprotect(sim_dynamic_shared + used, dynamic_shared_bytes + 4096 - used, PROT_NONE);
}

uint64_t planned_blocks(const Job& j, const Launch& l) {
    uint64_t all = l.blocks();
    return j.mode == Mode::sample && j.sample_blocks < all ? j.sample_blocks : all;
}

// Samples come in runs of four neighbours, evenly spaced, so that reuse between neighbours stays visible.
static uint64_t nth_block(uint64_t n, uint64_t planned) {
    uint64_t all = launch->blocks();
    if (planned == all) return n;
    uint64_t runs = (planned + 3) / 4, run = n / 4;
    uint64_t start = runs > 1 ? (all - 4) / (runs - 1) * run : 0;
    uint64_t index = start + n % 4;
    return index < all ? index : all - 1;
}

static void run_blocks(const EntryInfo& entry) {
    uint64_t planned = planned_blocks(*job, *launch);
    // Hand out several small blocks at once: the shared counter is a contended cache line.
    uint64_t chunk = job->workers > 1 ? planned / (uint64_t(job->workers) * 64) + 1 : 1;
    if (job->mode == Mode::sample) chunk = 4;
    for (;;) {
        uint64_t first = channel->next_block[launch_index].fetch_add(chunk);
        if (first >= planned) return;
        for (uint64_t n = first; n < first + chunk && n < planned; n++) {
            uint64_t b = nth_block(n, planned), row = b / launch->grid[0];
            sim_block_idx = {unsigned(b % launch->grid[0]), unsigned(row % launch->grid[1]), unsigned(row / launch->grid[1])};
            run_block(entry.call, arguments.pointer);
        }
    }
}

static void wait_for_workers() {
    channel->arrived[launch_index].fetch_add(1);
    for (int spins = 0; channel->arrived[launch_index].load() < job->workers; spins++)
        if (spins > 50) sched_yield();
}

void work(const Job& given, Channel& shared, int index, uint64_t token, const Ledger& share) {
    static Job own = given;
    job = &own;
    channel = &shared;
    slot = &shared.worker[index];
    ledger = share;
    uint64_t buffers = 0;
    for (const Buffer& b : own.buffers) buffers += b.section_bytes;
    uint64_t reserve = buffers + (stack_bytes + guard_bytes) * max_stacks + (2048ull << 20) + own.memory_limit;
    if (!reserve_stacks() || !install_fault_handlers()) fail(Status::crashed, "the worker cannot reserve its stacks");
    map_buffers(own);
    if (observing() && !prepare_observation()) fail(Status::crashed, "the worker cannot reserve its shadow memory");
    if (!limit_resources(reserve, uint64_t(own.timeout_ms) / 1000 + 2) || !enter_loading_stage(own.memory_limit))
        fail(Status::crashed, "the sandbox cannot be set up on this kernel: no seccomp or no resource limits");
    void* handle = load_library();
    if (!enter_running_stage(own.memory_limit)) fail(Status::crashed, "the sandbox's second stage was refused");
    for (launch_index = 0; launch_index < int(own.launches.size()); launch_index++) {
        launch = &own.launches[size_t(launch_index)];
        slot->launch.store(launch_index);
        check_shape();
        EntryInfo entry = find_entry(handle, launch->entry);
        bind_arguments(entry);
        fence_dynamic_shared();
        memcpy(&sim_grid_dim, launch->grid, sizeof sim_grid_dim);
        memcpy(&sim_block_dim, launch->block, sizeof sim_block_dim);
        if (observing()) begin_launch();
        run_blocks(entry);
        wait_for_workers();
    }
    slot->token = token;
    end_worker(Status::ok);
}

}  // namespace sim

using namespace sim;

#pragma GCC visibility push(default)  // what libraries may link against
extern "C" int sim_printf(const char* format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n <= 0) return n;
    int length = n < int(sizeof line) ? n : int(sizeof line) - 1;
    int at = channel->text_bytes.load();
    if (at + length > max_text) return n;
    at = channel->text_bytes.fetch_add(length);
    if (at + length <= max_text) memcpy(channel->text + at, line, size_t(length));
    return n;
}

extern "C" void sim_assert_failed(const char* expression, int line) {
    FindingRecord* f = add_finding(Kind::assertion, Severity::error, line, 0);
    if (f) snprintf(f->text, sizeof f->text, "assertion failed: %.120s", expression);
    end_worker(Status::aborted);
}

extern "C" void sim_trap(int line) {
    FindingRecord* f = add_finding(Kind::assertion, Severity::error, line, 0);
    if (f) snprintf(f->text, sizeof f->text, "__trap() was called");
    end_worker(Status::aborted);
}

extern "C" long long sim_clock() { return (long long)__builtin_ia32_rdtsc(); }
