#include "trace.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "cache.h"
#include "worker.h"

namespace sim {

namespace {

struct Record {  // one lane's access
    uint64_t address;
    uint32_t site;  // library offset of the call
    uint8_t bytes, access;
    int16_t buffer;
};

constexpr size_t lane_capacity = 1 << 18;
Record* records[warp_lanes];
uint32_t recorded[warp_lanes];

struct Group {  // one warp-wide request
    uint64_t address[warp_lanes];
    uint32_t lanes;
    uint32_t site;
    uint8_t bytes, access;
    int16_t buffer;
};
std::vector<Group> groups;

// Per site of the library: which groups it made in this flush, and how often the lane at hand executed it.
constexpr size_t max_sites = 1 << 20;
struct Site { std::vector<uint32_t> group; uint32_t executed = 0; };
std::vector<Site> sites;
uint32_t* site_index;  // [library offset], 0 where unseen
std::vector<uint32_t> used_sites;

uint32_t* block_index;  // [library offset] of a basic block's hook, slot + 1 in the ledger
int blocks_seen;

Counters* totals;

// 4-byte shared loads of neighbouring words, which nvcc turns into one LDS.128 where the first is aligned.
struct VectorLoad {
    uint64_t base[warp_lanes];
    uint32_t lanes;
    int words;
};
constexpr size_t merge_window = 64;  // loads apart
VectorLoad open_loads[merge_window];
size_t opened;

int distinct_addresses(const Group& g) {
    uint64_t addresses[warp_lanes];
    int n = 0;
    for (unsigned m = g.lanes; m; m &= m - 1) addresses[n++] = g.address[__builtin_ctz(m)];
    std::sort(addresses, addresses + n);
    return int(std::unique(addresses, addresses + n) - addresses);
}

bool continues(const VectorLoad& v, const Group& g) {
    if (v.lanes != g.lanes || v.words == 4) return false;
    for (unsigned m = g.lanes; m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        if (g.address[lane] != v.base[lane] + 4 * uint64_t(v.words)) return false;
    }
    return true;
}

bool joins_vector_load(const Group& g) {
    if (g.bytes != 4) return false;
    for (size_t i = 0; i < std::min(opened, merge_window); i++)
        if (continues(open_loads[i], g)) {
            open_loads[i].words++;
            return true;
        }
    for (unsigned m = g.lanes; m; m &= m - 1)
        if (g.address[__builtin_ctz(m)] % 16) return false;
    VectorLoad& v = open_loads[opened++ % merge_window];
    memcpy(v.base, g.address, sizeof v.base);
    v.lanes = g.lanes;
    v.words = 1;
    return false;
}

// Distinct 4-byte words that fall in one bank serialise: one wavefront for each. Wide accesses go in phases of as
// many lanes as make 128 bytes.
void count_shared(const Group& g) {
    int lanes_a_phase = g.bytes <= 4 ? 32 : 128 / g.bytes;
    double wavefronts = 0, needed = 0;
    for (int first = 0; first < warp_lanes; first += lanes_a_phase) {
        std::vector<uint64_t> seen;
        for (int lane = first; lane < first + lanes_a_phase; lane++)
            if (g.lanes >> lane & 1)
                for (uint64_t w = g.address[lane] / 4; w <= (g.address[lane] + g.bytes - 1) / 4; w++) seen.push_back(w);
        if (seen.empty()) continue;
        std::sort(seen.begin(), seen.end());
        seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
        int in_bank[32] = {}, worst = 0;
        for (uint64_t w : seen) worst = std::max(worst, ++in_bank[w % 32]);
        wavefronts += worst;
        needed += 1;
    }
    bool load = g.access == uint8_t(Access::load);
    if (load && joins_vector_load(g)) {
        if (distinct_addresses(g) * 4 > warp_lanes) totals->shared_load_wavefronts += wavefronts;
        return;
    }
    (load ? totals->shared_load_wavefronts : totals->shared_store_wavefronts) += wavefronts;
    (load ? totals->shared_load_requests : totals->shared_store_requests) += 1;
    totals->bank_conflicts += wavefronts - needed;
    if (g.access == uint8_t(Access::atomic)) totals->shared_atomics += __builtin_popcount(g.lanes);
}

int collect_sectors(const Group& g, uint64_t* sectors) {
    int n = 0;
    for (unsigned m = g.lanes; m; m &= m - 1) {
        uint64_t a = g.address[__builtin_ctz(m)];
        for (uint64_t s = a / 32; s <= (a + g.bytes - 1) / 32; s++) sectors[n++] = s;
    }
    std::sort(sectors, sectors + n);
    return int(std::unique(sectors, sectors + n) - sectors);
}

void count_atomic(const Group& g, int sectors) {
    int lanes = __builtin_popcount(g.lanes);
    totals->atomics += lanes;
    totals->atomic_conflicts += lanes - distinct_addresses(g);
    totals->atomic_sectors += sectors;
}

void count_global(const Group& g, int warp_index) {
    uint64_t sectors[warp_lanes * 2];
    int n = collect_sectors(g, sectors);
    for (int i = 0; i < n; i++) totals->global_lines += i == 0 || sectors[i] / 4 != sectors[i - 1] / 4;
    if (g.access == uint8_t(Access::load)) {
        totals->load_sectors += n;
        totals->load_requests += 1;
    } else if (g.access == uint8_t(Access::store)) {
        totals->store_sectors += n;
        totals->store_requests += 1;
    } else count_atomic(g, n);
    queue_request(warp_index, Access(g.access), g.buffer, sectors, n);
}

Site& site_of(uint32_t offset) {
    uint32_t& index = site_index[offset];
    if (!index) {
        sites.emplace_back();
        index = uint32_t(sites.size());
    }
    return sites[index - 1];
}

// Lanes executed the same request where it is the same site's k-th execution in each of them.
void group_lanes() {
    groups.clear();
    used_sites.clear();
    for (int lane = 0; lane < warp_lanes; lane++) {
        for (uint32_t i = 0; i < recorded[lane]; i++) {
            const Record& r = records[lane][i];
            Site& site = site_of(r.site);
            if (site.group.empty()) used_sites.push_back(r.site);
            uint32_t k = site.executed++;
            if (k == site.group.size()) {
                site.group.push_back(uint32_t(groups.size()));
                Group g{};
                g.site = r.site;
                g.bytes = r.bytes;
                g.access = r.access;
                g.buffer = r.buffer;
                groups.push_back(g);
            }
            Group& g = groups[site.group[k]];
            g.address[lane] = r.address;
            g.lanes |= 1u << lane;
        }
        for (uint32_t s : used_sites) site_of(s).executed = 0;
    }
}

// How many rounds of global loads wait for one another: a site's executions, as loops overlap only what they unroll.
double load_rounds() {
    size_t rounds = 0;
    for (uint32_t s : used_sites) {
        const Site& site = site_of(s);
        const Group& g = groups[site.group[0]];
        if (g.buffer >= 0 && g.access == uint8_t(Access::load)) rounds = std::max(rounds, site.group.size());
    }
    return double(rounds);
}

}  // namespace

bool prepare_trace() {
    auto map = [](size_t bytes) {
        void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return p == MAP_FAILED ? nullptr : p;
    };
    bool ok = true;
    for (Record*& lane : records) ok &= (lane = (Record*)map(sizeof(Record) * lane_capacity)) != nullptr;
    site_index = (uint32_t*)map(sizeof(uint32_t) * max_sites);
    block_index = (uint32_t*)map(sizeof(uint32_t) * max_sites);
    return ok && site_index && block_index && prepare_cache();
}

void trace_begin_launch() {
    totals = ledger.counters + launch_index;
    memset(block_index, 0, sizeof(uint32_t) * std::min(max_sites, size_t(library_end - library_base)));
    blocks_seen = 0;
    cache_begin_launch();
}

void trace_begin_block() {
    uint64_t all = launch->blocks();
    uint64_t b = sim_block_idx.x + uint64_t(launch->grid[0]) * (sim_block_idx.y + uint64_t(launch->grid[1]) * sim_block_idx.z);
    // In check mode every block runs, but metrics come from runs of four neighbours as in sample mode.
    uint64_t step = std::max<uint64_t>(1, all / std::max<uint64_t>(4, job->sample_blocks));
    tracing = job->mode == Mode::sample || (b / sample_run) % step == 0;
    if (!tracing) return;
    memset(recorded, 0, sizeof recorded);
    totals->blocks += 1;
    totals->warps += block.warps;
    cache_begin_block(b);
}

void trace_flush_warp(int warp_index) {
    group_lanes();
    if (groups.empty()) return;
    opened = 0;
    for (const Group& g : groups) {
        if (g.buffer < 0) count_shared(g);
        else count_global(g, warp_index);
    }
    totals->dependent_loads += load_rounds();
    for (uint32_t s : used_sites) site_of(s).group.clear();
    memset(recorded, 0, sizeof recorded);
}

void trace_barrier() {
    trace_flush_warp(block.current / warp_lanes);  // the last warp to arrive still runs
    totals->barriers += 1;
    replay_requests();
}

void trace_end_block() {
    if (!tracing) return;
    replay_requests();
    tracing = false;
}

void trace_warp_operation() { totals->warp_operations += 1; }

void trace_access(uintptr_t address, unsigned bytes, Access access, uintptr_t pc, int buffer) {
    int lane = block.current % warp_lanes;
    uint64_t site = pc - library_base;
    if (recorded[lane] >= lane_capacity || site >= max_sites) {
        totals->truncated = 1;
        return;
    }
    records[lane][recorded[lane]++] = Record{address, uint32_t(site), uint8_t(bytes), uint8_t(access), int16_t(buffer)};
}

void trace_basic_block(uintptr_t pc) {
    uint64_t offset = pc - library_base;
    if (offset >= max_sites) return;
    uint32_t& index = block_index[offset];
    BlockCount* counts = ledger.counts + size_t(launch_index) * max_blocks_counted;
    if (!index) {
        if (blocks_seen == max_blocks_counted) return;
        index = uint32_t(++blocks_seen);
        counts[index - 1].pc = offset;
    }
    counts[index - 1].count++;
}

}  // namespace sim
