#include "sandbox.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <vector>

namespace sim {

static bool limit(int resource, rlim_t soft, rlim_t hard) {
    rlimit value{soft, hard};
    return setrlimit(__rlimit_resource_t(resource), &value) == 0;
}

bool limit_resources(uint64_t memory_bytes, uint64_t cpu_seconds) {
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 &&
           limit(RLIMIT_AS, memory_bytes, memory_bytes) && limit(RLIMIT_CPU, cpu_seconds, cpu_seconds + 1) &&
           limit(RLIMIT_NPROC, 0, 0) && limit(RLIMIT_FSIZE, 0, 0) && limit(RLIMIT_CORE, 0, 0) &&
           limit(RLIMIT_NOFILE, 64, 64) && limit(RLIMIT_MEMLOCK, 0, 0);
}

namespace {

// A seccomp program in the making: each rule either decides or falls through to the next.
class Filter {
  public:
    Filter() {
        load(offsetof(seccomp_data, arch));
        unless_equal_return(AUDIT_ARCH_X86_64, SECCOMP_RET_KILL_PROCESS);
        load(offsetof(seccomp_data, nr));
        // The x32 ABI reaches the same calls under other numbers.
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));
        code_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    }
    void allow(int nr) {
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, unsigned(nr), 0, 1));
        code_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    }
    // Allows `nr` only where none of `bits` is set in the low word of argument `index`.
    void allow_without_bits(int nr, int index, unsigned bits) {
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, unsigned(nr), 0, 4));
        load(argument(index));
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1));
        code_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
        code_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    }
    // Allows mmap below `largest` bytes, without the protection bits `forbidden`.
    void allow_mmap(uint64_t largest, unsigned forbidden) {
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, unsigned(SYS_mmap), 0, 9));
        load(argument(2));
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, forbidden, 6, 0));
        load(argument(1) + 4);
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, unsigned(largest >> 32), 4, 0));
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, unsigned(largest >> 32), 0, 2));
        load(argument(1));
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, unsigned(largest), 1, 0));
        code_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
        code_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
    }
    bool install() {
        code_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
        sock_fprog program{(unsigned short)code_.size(), code_.data()};
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
    }

  private:
    static unsigned argument(int index) { return unsigned(offsetof(seccomp_data, args) + 8 * size_t(index)); }
    void load(size_t offset) { code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, unsigned(offset))); }
    void unless_equal_return(unsigned value, unsigned action) {
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0));
        code_.push_back(BPF_STMT(BPF_RET | BPF_K, action));
    }
    std::vector<sock_filter> code_;
};

const int running_calls[] = {
    SYS_munmap, SYS_brk, SYS_madvise, SYS_futex, SYS_exit, SYS_exit_group, SYS_rt_sigreturn, SYS_nanosleep,
    SYS_clock_nanosleep, SYS_clock_gettime, SYS_sched_yield, SYS_restart_syscall,
};

}  // namespace

bool enter_loading_stage(uint64_t largest_mapping) {
    Filter filter;
    for (int nr : running_calls) filter.allow(nr);
    for (int nr : {SYS_read, SYS_pread64, SYS_close, SYS_fstat, SYS_newfstatat, SYS_lseek, SYS_access, SYS_getcwd,
                   SYS_mprotect, SYS_prctl, SYS_rt_sigprocmask})
        filter.allow(nr);  // prctl is what installs the second stage
    filter.allow_without_bits(SYS_openat, 2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND);
    filter.allow_mmap(largest_mapping, 0);
    return filter.install();
}

bool enter_running_stage(uint64_t largest_mapping) {
    Filter filter;
    for (int nr : running_calls) filter.allow(nr);
    filter.allow_without_bits(SYS_mprotect, 2, PROT_EXEC);
    filter.allow_mmap(largest_mapping, PROT_EXEC);
    return filter.install();
}

}  // namespace sim
