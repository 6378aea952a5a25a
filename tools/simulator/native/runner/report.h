// Writes what the supervisor learnt as lines of text, the format that decode.py reads.
#pragma once
#include "channel.h"
#include "job.h"

namespace sim {

void write_report(int fd, const Job& job, const Channel& channel, uint64_t token, bool late, const int* exit_status,
                  const Ledger& ledger);

}  // namespace sim
