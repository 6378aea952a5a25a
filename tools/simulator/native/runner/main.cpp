// The supervisor: reads a job, forks workers, waits, and is the only process that writes the report.
//
// It never loads user code, and workers inherit no descriptor of the report: what a worker can touch is its slot
// in the channel, where success needs the token drawn for this run.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "report.h"
#include "worker.h"

using namespace sim;

static std::string read_all(int fd) {
    std::string text;
    char part[65536];
    for (ssize_t n; (n = read(fd, part, sizeof part)) > 0;) text.append(part, size_t(n));
    return text;
}

template <class T>
static T* share(size_t count) {
    void* memory = mmap(nullptr, sizeof(T) * count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : (T*)memory;
}

static long now_ms() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct Crew {
    pid_t pid[max_workers];
    int size = 0, alive = 0;
    int exit_status[max_workers];
    void signal_all(int number) {
        for (int i = 0; i < size; i++)
            if (pid[i] > 0) kill(pid[i], number);
    }
    // True where a worker ended badly; then the others have nothing left to do.
    bool reap() {
        bool failed = false;
        int status;
        for (pid_t p; (p = waitpid(-1, &status, WNOHANG)) > 0;)
            for (int i = 0; i < size; i++)
                if (pid[i] == p) {
                    pid[i] = 0;
                    exit_status[i] = status;
                    alive--;
                    failed |= !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
                }
        return failed;
    }
};

// Waits for the crew; true where the deadline passed first.
static bool supervise(Crew& crew, long timeout_ms, const sigset_t& child) {
    long deadline = now_ms() + timeout_ms;
    bool late = false, failed = false;
    while (crew.alive) {
        failed |= crew.reap();
        if (!crew.alive) break;
        if (failed) crew.signal_all(SIGKILL);
        long left = deadline - now_ms();
        if (left <= 0) {
            // First ask where the code is (SIGXCPU), 100 ms later do not ask any more.
            crew.signal_all(late ? SIGKILL : SIGXCPU);
            late = true;
            deadline = now_ms() + 100;
            left = 100;
        }
        timespec wait{left / 1000, left % 1000 * 1000000};
        sigtimedwait(&child, nullptr, &wait);
    }
    return late;
}

int main(int, char** argv) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int report_fd = atoi(argv[1]);
    fcntl(report_fd, F_SETFD, FD_CLOEXEC);
    Job job;
    std::string problem = parse_job(read_all(0), job);
    if (!problem.empty()) {
        dprintf(report_fd, "status bad_launch\nmessage %s\nend\n", problem.c_str());
        return 2;
    }
    job.workers = std::clamp(job.workers, 1, max_workers);
    size_t launches = job.launches.size();
    Channel* channel = share<Channel>(1);
    bool observed = job.mode != Mode::plain;
    size_t shares = observed ? launches * size_t(job.workers) : 0, buffers = job.buffers.size();
    Ledger all{share<Counters>(shares + 1), share<Traffic>(shares * buffers + 1), share<BlockCount>(shares * max_blocks_counted + 1)};
    uint64_t token = 0;
    if (!channel || !all.counters || !all.traffic || !all.counts || getrandom(&token, sizeof token, 0) != sizeof token) return 3;
    token |= 1;  // never the zero that an untouched slot holds
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, nullptr);
    Crew crew;
    for (int i = 0; i < job.workers; i++) {
        pid_t self = getpid(), pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != self) _exit(9);
            close(report_fd);
            size_t mine = observed ? size_t(i) * launches : 0;
            work(job, *channel, i, token,
                 Ledger{all.counters + mine, all.traffic + mine * buffers, all.counts + mine * max_blocks_counted});
        }
        if (pid < 0) { crew.signal_all(SIGKILL); return 4; }
        crew.pid[crew.size++] = pid;
        crew.alive++;
    }
    bool late = supervise(crew, job.timeout_ms, child);
    write_report(report_fd, job, *channel, token, late, crew.exit_status, all);
    return 0;
}
