// Confines a worker before and after user code is loaded.
//
// Covers: starting processes or threads, signals to others, every network call, opening files for writing,
// renaming and deleting, ptrace, changing limits, executable memory after loading; CPU time, address space,
// file size, open files, core dumps; privilege gain.
// Does not cover: reading world-readable files *while the library is being loaded* (the compiler refuses
// libraries with constructors, which is what keeps that window shut), side channels, kernel bugs, and memory of
// the worker itself: user code can scribble over the simulator's own state, so a run's results are to be
// checked against an oracle like those of any untrusted program.
#pragma once
#include <cstdint>

namespace sim {

// Limits for the calling worker; false when the kernel refused one (fail closed).
bool limit_resources(uint64_t memory_bytes, uint64_t cpu_seconds);

// Stage one lets the dynamic loader read files; stage two leaves only what a running kernel needs.
bool enter_loading_stage(uint64_t largest_mapping);
bool enter_running_stage(uint64_t largest_mapping);

}  // namespace sim
