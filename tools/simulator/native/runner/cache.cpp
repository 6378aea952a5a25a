#include "cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "worker.h"

namespace sim {

namespace {

struct Request {
    uint32_t first, count;  // into sectors
    int16_t buffer;
    uint8_t access;
};
struct Queue {
    std::vector<Request> requests;
    std::vector<uint64_t> sectors;
};
Queue queues[max_threads / warp_lanes];

// 128 KB of 128-byte lines with four sectors each, 4 ways; an SM's L1 is shared by its resident blocks.
constexpr int ways = 4, sets = 256;
struct Line { uint64_t tag; uint32_t used, block, run; uint8_t valid; bool common; };
Line lines[sets][ways];
uint32_t now, current_block, current_run;

// One bit a sector and buffer: seen by a load, seen by a store.
struct Footprint { unsigned char *loaded, *stored; uint64_t bytes; };
std::vector<Footprint> footprints;

bool first_time(unsigned char* bits, uint64_t sector) {
    unsigned char mask = (unsigned char)(1u << (sector % 8));
    bool fresh = !(bits[sector / 8] & mask);
    bits[sector / 8] |= mask;
    return fresh;
}

// Whether a line that another block left in L1 would be there on a GPU. Neighbouring samples run on different SMs,
// so they share nothing; what blocks far apart have in common (weights) every block has, and finds it there.
bool survives(Line& line) {
    if (line.block == current_block || line.common) return true;
    if (line.run == current_run) return false;
    line.common = true;
    return true;
}

// True where the sector is in L1; loads it otherwise.
bool hit(uint64_t sector) {
    uint64_t tag = sector / 4;
    // Hash the set index: power-of-two strides would all fall into one set, which hardware avoids too.
    Line* set = lines[(tag ^ tag >> 8 ^ tag >> 17) % sets];
    uint8_t bit = uint8_t(1u << (sector % 4));
    Line* oldest = set;
    now++;
    for (int w = 0; w < ways; w++) {
        Line& line = set[w];
        if (line.valid && line.tag == tag) {
            if (!survives(line)) line.valid = 0;
            bool present = line.valid & bit;
            line.valid |= bit;
            line.used = now;
            line.block = current_block;
            line.run = current_run;
            return present;
        }
        if (line.used < oldest->used) oldest = &line;
    }
    *oldest = Line{tag, now, current_block, current_run, bit, false};
    return false;
}

void serve(const Request& r, const uint64_t* sectors) {
    const Buffer& b = job->buffers[size_t(r.buffer)];
    Traffic& traffic = ledger.traffic[size_t(launch_index) * job->buffers.size() + size_t(r.buffer)];
    Footprint& footprint = footprints[size_t(r.buffer)];
    uint64_t base = uintptr_t(b.data - b.data_offset) / 32;
    for (uint32_t i = 0; i < r.count; i++) {
        uint64_t sector = sectors[r.first + i], relative = sector - base;
        if (r.access == uint8_t(Access::load)) {
            if (hit(sector)) continue;
            ledger.counters[launch_index].l2_load_sectors += 1;
            traffic.load_total += 1;
            traffic.load_distinct += first_time(footprint.loaded, relative);
        } else {
            traffic.store_total += 1;
            traffic.store_distinct += first_time(footprint.stored, relative);
        }
    }
}

}  // namespace

bool prepare_cache() {
    for (const Buffer& b : job->buffers) {
        Footprint f{};
        f.bytes = b.section_bytes / 256 + 1;
        void* p = mmap(nullptr, 2 * f.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) return false;
        f.loaded = (unsigned char*)p;
        f.stored = f.loaded + f.bytes;
        footprints.push_back(f);
    }
    return true;
}

void cache_begin_launch() {
    // Fresh zero pages without touching the untouched ones.
    for (Footprint& f : footprints) {
        uintptr_t begin = uintptr_t(f.loaded) & ~uintptr_t(4095);
        madvise((void*)begin, 2 * f.bytes, MADV_DONTNEED);
    }
    for (auto& set : lines)
        for (Line& line : set) line = Line{};
}


void cache_begin_block(uint64_t index) {
    current_block++;
    current_run = uint32_t(index / sample_run) + 1;
}

void queue_request(int warp_index, Access access, int buffer, const uint64_t* sectors, int count) {
    Queue& q = queues[warp_index];
    q.requests.push_back(Request{uint32_t(q.sectors.size()), uint32_t(count), int16_t(buffer), uint8_t(access)});
    q.sectors.insert(q.sectors.end(), sectors, sectors + count);
}

void replay_requests() {
    size_t longest = 0;
    for (int w = 0; w < block.warps; w++) longest = std::max(longest, queues[w].requests.size());
    for (size_t i = 0; i < longest; i++)
        for (int w = 0; w < block.warps; w++)
            if (i < queues[w].requests.size()) serve(queues[w].requests[i], queues[w].sectors.data());
    for (int w = 0; w < block.warps; w++) {
        queues[w].requests.clear();
        queues[w].sectors.clear();
    }
}

}  // namespace sim
