// The job a runner executes, as the parent wrote it: plain data, parsed once before any user code is loaded.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sim {

enum class Mode { plain, check, sample };

struct Buffer {
    uint64_t section_offset;  // page aligned place in the arena's memfd
    uint64_t section_bytes;
    uint64_t data_offset;  // where element 0 lies inside the section
    uint64_t bytes;
    bool writable;
    unsigned char* data = nullptr;  // set when mapped
};

struct SharedVariable {
    uint64_t offset;  // from the library's load address
    uint64_t bytes;
};

struct Argument {
    bool is_buffer;
    int buffer = -1;
    std::vector<unsigned char> scalar;  // raw little-endian bytes
};

struct Launch {
    int entry;  // index of sim_entry_N
    unsigned grid[3], block[3];
    uint64_t shared_bytes;
    std::vector<Argument> args;
    uint64_t blocks() const { return uint64_t(grid[0]) * grid[1] * grid[2]; }
    unsigned threads() const { return block[0] * block[1] * block[2]; }
};

struct Job {
    std::string library;
    Mode mode = Mode::plain;
    int workers = 1;
    int arena_fd = -1;
    long timeout_ms = 20000;
    uint64_t memory_limit = 4ull << 30;
    uint64_t sample_blocks = 16;
    std::vector<Buffer> buffers;
    std::vector<SharedVariable> shared;
    std::vector<Launch> launches;
};

// Parses the lines that runner.py writes; returns an empty string or what is wrong. One item a line, in any order
// but for launches, which run in theirs:
//   library PATH | mode plain|check|sample | workers N | timeout_ms N | memory_limit BYTES | sample_blocks N
//   arena_fd N | buffer SECTION_OFFSET SECTION_BYTES DATA_OFFSET BYTES WRITABLE | shared OFFSET BYTES
//   launch ENTRY GX GY GZ BX BY BZ SHARED_BYTES COUNT then COUNT times `b BUFFER` or `s HEX_BYTES`
//   end
std::string parse_job(const std::string& text, Job& job);

}  // namespace sim
