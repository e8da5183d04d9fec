// The system calls that a function may not make.
#pragma once

#include <linux/filter.h>

#include <vector>

namespace orla::function {

// A seccomp program that refuses (EPERM) what changes the machine, other processes or namespaces: mount and its kin,
// ptrace, kernel modules, kexec, bpf, perf, keys, clocks, swap, reboot, new namespaces; clone3 and io_uring are not
// there (ENOSYS), since a filter cannot see what they ask for. System calls of another architecture (32 bits, x32) end
// the process. Empty on an architecture that it does not know.
std::vector<sock_filter> function_filter();

}  // namespace orla::function
