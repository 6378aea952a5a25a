#include "job.h"

#include <sstream>

namespace sim {

static bool parse_scalar(const std::string& hex, std::vector<unsigned char>& out) {
    if (hex.size() % 2) return false;
    for (size_t i = 0; i < hex.size(); i += 2) out.push_back((unsigned char)std::stoul(hex.substr(i, 2), nullptr, 16));
    return true;
}

static bool parse_arguments(std::istringstream& in, size_t count, Launch& launch) {
    for (size_t i = 0; i < count; i++) {
        std::string kind, value;
        in >> kind >> value;
        Argument arg{};
        arg.is_buffer = kind == "b";
        if (arg.is_buffer) arg.buffer = std::stoi(value);
        else if (!parse_scalar(value, arg.scalar)) return false;
        launch.args.push_back(arg);
    }
    return bool(in);
}

std::string parse_job(const std::string& text, Job& job) {
    std::istringstream lines(text);
    std::string line, key;
    bool ended = false;
    while (std::getline(lines, line)) {
        std::istringstream in(line);
        in >> key;
        if (key == "library") { std::getline(in >> std::ws, job.library); continue; }
        if (key == "mode") {
            std::string mode;
            in >> mode;
            job.mode = mode == "check" ? Mode::check : mode == "sample" ? Mode::sample : Mode::plain;
        } else if (key == "workers") in >> job.workers;
        else if (key == "arena_fd") in >> job.arena_fd;
        else if (key == "timeout_ms") in >> job.timeout_ms;
        else if (key == "memory_limit") in >> job.memory_limit;
        else if (key == "sample_blocks") in >> job.sample_blocks;
        else if (key == "buffer") {
            Buffer b{};
            in >> b.section_offset >> b.section_bytes >> b.data_offset >> b.bytes >> b.writable;
            job.buffers.push_back(b);
        } else if (key == "shared") {
            SharedVariable v{};
            in >> v.offset >> v.bytes;
            job.shared.push_back(v);
        } else if (key == "launch") {
            Launch l{};
            size_t count = 0;
            in >> l.entry;
            for (unsigned& g : l.grid) in >> g;
            for (unsigned& b : l.block) in >> b;
            in >> l.shared_bytes >> count;
            if (!parse_arguments(in, count, l)) return "malformed launch arguments";
            job.launches.push_back(l);
        } else if (key == "end") { ended = true; break; }
        else return "unknown job line '" + key + "'";
        if (in.fail()) return "malformed job line '" + line + "'";
    }
    return ended ? "" : "truncated job";
}

}  // namespace sim
