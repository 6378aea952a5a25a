#include "report.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "worker.h"

namespace sim {

static void append(std::string& out, const char* format, ...) {
    char part[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(part, sizeof part, format, args);
    va_end(args);
    if (n > 0) out.append(part, std::min(size_t(n), sizeof part - 1));
}

// Text a worker wrote is untrusted: one line, printable, terminated.
static std::string clean(const char* text, size_t limit) {
    std::string out;
    for (size_t i = 0; i < limit && text[i]; i++) out += text[i] >= 32 && text[i] < 127 ? text[i] : ' ';
    return out;
}

static const char* name(Status status) {
    switch (status) {
        case Status::ok: return "ok";
        case Status::timed_out: return "timed_out";
        case Status::out_of_memory: return "out_of_memory";
        case Status::bad_launch: return "bad_launch";
        case Status::aborted: return "aborted";
        default: return "crashed";
    }
}

// How a worker ended, believing "ok" only with the token and a clean exit.
static Status verdict(const WorkerSlot& slot, uint64_t token, int exit_status, bool late) {
    Status said = Status(slot.status.load());
    bool clean_exit = WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 0;
    if (said == Status::ok) return clean_exit && slot.token == token ? Status::ok : Status::crashed;
    if (late && said == Status::none) return Status::timed_out;
    if (said == Status::none && WIFSIGNALED(exit_status) &&
        (WTERMSIG(exit_status) == SIGXCPU)) return Status::timed_out;
    return said == Status::none || said < Status::none || said > Status::aborted ? Status::crashed : said;
}

// The worker whose end explains the run: any real end before one that was merely killed along.
static int telling_worker(const Job& job, const Channel& channel, uint64_t token, const int* exits, bool late) {
    int chosen = 0;
    for (int i = 0; i < job.workers; i++) {
        Status v = verdict(channel.worker[i], token, exits[i], late);
        if (v == Status::ok) continue;
        bool spoke = channel.worker[i].status.load() != int(Status::none);
        bool chosen_spoke = channel.worker[chosen].status.load() != int(Status::none) &&
                            verdict(channel.worker[chosen], token, exits[chosen], late) != Status::ok;
        if (spoke || !chosen_spoke) chosen = i;
        if (spoke) break;
    }
    return chosen;
}

static void append_findings(std::string& out, const Channel& channel) {
    int count = std::clamp(channel.findings.load(), 0, max_findings);
    for (int i = 0; i < count; i++) {
        const FindingRecord& f = channel.finding[i];
        append(out, "finding %d %d %d %d %llu %d %d %lld %u %u %u %u %u %u %llu %llu ", int(f.kind), int(f.severity), f.launch,
               f.line, (unsigned long long)f.pc, f.buffer, f.access_bytes, (long long)f.byte_offset, f.block[0], f.block[1],
               f.block[2], f.thread[0], f.thread[1], f.thread[2], (unsigned long long)f.detail, (unsigned long long)f.other_pc);
        out += clean(f.text, sizeof f.text) + "\n";
    }
}

static void append_counters(std::string& out, const Job& job, size_t launch, const Counters* counters) {
    constexpr size_t fields = sizeof(Counters) / sizeof(double);
    double sum[fields] = {};
    for (int w = 0; w < job.workers; w++) {
        double values[fields];
        memcpy(values, &counters[size_t(w) * job.launches.size() + launch], sizeof values);
        for (size_t i = 0; i < fields; i++) sum[i] += values[i];
    }
    append(out, "counters %zu", launch);
    for (double v : sum) append(out, " %.17g", v);
    out += "\n";
}

static void append_traffic(std::string& out, const Job& job, size_t launch, const Traffic* traffic) {
    size_t buffers = job.buffers.size();
    for (size_t b = 0; b < buffers; b++) {
        Traffic sum{};
        for (int w = 0; w < job.workers; w++) {
            const Traffic& t = traffic[(size_t(w) * job.launches.size() + launch) * buffers + b];
            sum.load_total += t.load_total;
            sum.load_distinct += t.load_distinct;
            sum.store_total += t.store_total;
            sum.store_distinct += t.store_distinct;
        }
        if (sum.load_total + sum.store_total > 0)
            append(out, "traffic %zu %zu %.17g %.17g %.17g %.17g\n", launch, b, sum.load_total, sum.load_distinct,
                   sum.store_total, sum.store_distinct);
    }
}

static void append_executions(std::string& out, const Job& job, size_t launch, const BlockCount* counts) {
    std::map<uint64_t, uint64_t> sum;
    for (int w = 0; w < job.workers; w++) {
        const BlockCount* mine = counts + (size_t(w) * job.launches.size() + launch) * max_blocks_counted;
        for (int b = 0; b < max_blocks_counted && mine[b].pc; b++) sum[mine[b].pc] += mine[b].count;
    }
    append(out, "executions %zu", launch);
    for (const auto& [pc, count] : sum) append(out, " %llu:%llu", (unsigned long long)pc, (unsigned long long)count);
    out += "\n";
}

static void write_all(int fd, const std::string& text) {
    for (size_t done = 0; done < text.size();) {
        ssize_t n = write(fd, text.data() + done, text.size() - done);
        if (n <= 0) return;
        done += size_t(n);
    }
}

void write_report(int fd, const Job& job, const Channel& channel, uint64_t token, bool late, const int* exits,
                  const Ledger& ledger) {
    std::string out;
    int teller = telling_worker(job, channel, token, exits, late);
    const WorkerSlot& slot = channel.worker[teller];
    Status status = verdict(slot, token, exits[teller], late);
    append(out, "status %s\n", name(status));
    append(out, "ended %d %d %llu\n", slot.launch.load(), WIFSIGNALED(exits[teller]) ? WTERMSIG(exits[teller]) : slot.signal,
           (unsigned long long)slot.pc);
    out += "message " + clean(slot.message, sizeof slot.message) + "\n";
    append_findings(out, channel);
    if (job.mode != Mode::plain && status == Status::ok)
        for (size_t l = 0; l < job.launches.size(); l++) {
            append_counters(out, job, l, ledger.counters);
            append_traffic(out, job, l, ledger.traffic);
            append_executions(out, job, l, ledger.counts);
        }
    std::string text = clean(channel.text, size_t(std::clamp(channel.text_bytes.load(), 0, max_text)));
    out += "text " + text + "\nend\n";
    write_all(fd, out);
}

}  // namespace sim
