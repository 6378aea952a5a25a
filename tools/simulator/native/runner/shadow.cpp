#include "shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace sim {

namespace {

constexpr uint16_t nobody = 0xffff, several = 0xfffe;

// One cell a word; sub-word accesses use one cell a byte and mark the word as split. Epochs are unique over a
// worker's life, so cells never need clearing between blocks.
struct Cell {
    uint32_t write_epoch, read_epoch;
    uint32_t written_in;  // block serial
    uint32_t write_clock, read_clock;
    uint16_t writer, reader, reader_warp;
    uint8_t atomic_write, split;
    uint32_t write_site, read_site;  // low halves of return addresses
};

constexpr size_t dynamic_words = 65536;
constexpr size_t static_words = 262144;
constexpr size_t all_words = dynamic_words + static_words;
Cell* words;
Cell* bytes_;
uint32_t epoch = 1, serial = 0;
uintptr_t static_begin, static_end;

bool ordered(uint16_t thread, uint32_t clock_then, int now) {
    if (thread == now) return true;
    return thread / warp_lanes == now / warp_lanes && block.thread[now].clock > clock_then;
}

bool readers_ordered(const Cell& c, int now) {
    if (c.reader == now) return true;
    return c.reader_warp == now / warp_lanes && block.thread[now].clock > c.read_clock;
}

struct Sighting {
    uintptr_t address, pc, start;
    unsigned bytes;
    int line, place;
};

// `other_site` is the low half of the earlier access's address, 0 where there is none.
void report(Kind kind, Severity severity, const Sighting& s, const char* text, int other, uint32_t other_site) {
    FindingRecord* f = add_finding(kind, severity, s.line, s.pc);
    if (!f) return;
    f->buffer = s.place;
    f->access_bytes = int(s.bytes);
    f->byte_offset = int64_t(s.address - s.start);
    f->detail = uint64_t(other);
    if (other_site) f->other_pc = other_site - uint32_t(library_base);
    if (other >= 0 && other < several) snprintf(f->text, sizeof f->text, text, block.current, other);
    else snprintf(f->text, sizeof f->text, "%s", text);
}

void record_read(Cell& c, int t, uintptr_t pc) {
    c.read_site = uint32_t(pc);
    if (c.read_epoch != epoch) {
        c.read_epoch = epoch;
        c.reader = uint16_t(t);
        c.reader_warp = uint16_t(t / warp_lanes);
        c.read_clock = block.thread[t].clock;
        return;
    }
    if (c.reader != t) c.reader = several;
    if (c.reader_warp != t / warp_lanes) c.reader_warp = nobody;
    c.read_clock = std::max(c.read_clock, block.thread[t].clock);
}

void check_cell(Cell& c, Access access, const Sighting& s) {
    int t = block.current;
    bool reads = access != Access::store, writes = access != Access::load, atomic = access == Access::atomic;
    bool write_race = c.write_epoch == epoch && !ordered(c.writer, c.write_clock, t) && !(atomic && c.atomic_write);
    if (reads && c.written_in != serial)
        report(Kind::uninitialised_shared, Severity::error, s, "read of shared memory that this block never wrote", -1, 0);
    if (write_race) {
        // All lanes storing through one instruction is usually the same value: wrong by the rules, harmless in practice.
        bool same_site = !reads && c.write_site == uint32_t(s.pc);
        report(Kind::race, same_site ? Severity::warning : Severity::error, s,
               reads ? "thread %d reads what thread %d wrote, with no barrier between"
                     : "threads %d and %d write the same place, with no barrier between", c.writer, c.write_site);
    }
    if (writes && !atomic && c.read_epoch == epoch && !readers_ordered(c, t))
        report(Kind::race, Severity::error, s,
               c.reader == several ? "a thread overwrites what others read, with no barrier between"
                                   : "thread %d overwrites what thread %d reads, with no barrier between", c.reader, c.read_site);
    if (reads && !atomic) record_read(c, t, s.pc);
    if (!writes) return;
    c.write_epoch = epoch;
    c.writer = uint16_t(t);
    c.write_clock = block.thread[t].clock;
    c.atomic_write = atomic;
    c.written_in = serial;
    c.write_site = uint32_t(s.pc);
}

size_t cell_byte(uintptr_t address, int place) {
    if (place == -2) return address - uintptr_t(sim_dynamic_shared);
    return dynamic_words * 4 + (address - static_begin);
}

void split_word(size_t word) {
    for (int i = 0; i < 4; i++) bytes_[word * 4 + size_t(i)] = words[word];
    words[word].split = 1;
}

}  // namespace

bool prepare_shadow() {
    auto map = [](size_t bytes) {
        void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return p == MAP_FAILED ? nullptr : (Cell*)p;
    };
    words = map(sizeof(Cell) * all_words);
    bytes_ = map(sizeof(Cell) * all_words * 4);
    return words && bytes_;
}

void shadow_begin_launch() {
    static_begin = static_end = 0;
    for (const SharedVariable& v : job->shared) {
        uintptr_t at = library_base + v.offset;
        if (!static_begin || at < static_begin) static_begin = at & ~uintptr_t(15);
        static_end = std::max(static_end, at + v.bytes);
    }
    if (static_end - static_begin > static_words * 4) static_end = static_begin + static_words * 4;
}

void shadow_begin_block() { serial++; epoch++; }
void shadow_barrier() { epoch++; }

int shared_place(uintptr_t address, uintptr_t& start, uint64_t& bytes) {
    uintptr_t dynamic = uintptr_t(sim_dynamic_shared);
    if (address - dynamic < dynamic_words * 4) {
        start = dynamic;
        bytes = launch->shared_bytes;
        return -2;
    }
    if (address < static_begin || address >= static_end) return -1;
    const auto& all = job->shared;
    auto after = std::upper_bound(all.begin(), all.end(), address - library_base,
                                  [](uint64_t a, const SharedVariable& v) { return a < v.offset; });
    if (after == all.begin()) return -1;
    --after;
    start = library_base + after->offset;
    bytes = after->bytes;
    return -3 - int(after - all.begin());
}

void check_shared(uintptr_t address, unsigned size, Access access, uintptr_t pc, int line, int place, uintptr_t start) {
    size_t first = cell_byte(address, place);
    if (first + size > all_words * 4) return;
    Sighting s{address, pc, start, size, line, place};
    if (size < 4 || first % 4) {
        for (size_t i = first; i < first + size; i++) {
            if (!words[i / 4].split) split_word(i / 4);
            check_cell(bytes_[i], access, s);
        }
        return;
    }
    for (size_t word = first / 4; word < (first + size) / 4; word++) {
        if (!words[word].split) check_cell(words[word], access, s);
        else
            for (size_t i = word * 4; i < word * 4 + 4; i++) check_cell(bytes_[i], access, s);
    }
}

}  // namespace sim
