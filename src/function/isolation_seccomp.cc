#include "function/isolation_seccomp.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace orla::function {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;
#endif

constexpr std::uint32_t kX32 = 0x40000000;

constexpr long kDenied[] = {
    SYS_acct,
    SYS_add_key,
    SYS_adjtimex,
    SYS_bpf,
    SYS_chroot,
    SYS_clock_adjtime,
    SYS_clock_settime,
    SYS_delete_module,
    SYS_fanotify_init,
    SYS_finit_module,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fsopen,
    SYS_fspick,
    SYS_init_module,
    SYS_kcmp,
    SYS_kexec_load,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
    SYS_keyctl,
    SYS_lookup_dcookie,
    SYS_mount,
    SYS_move_mount,
    SYS_move_pages,
    SYS_name_to_handle_at,
    SYS_nfsservctl,
    SYS_open_by_handle_at,
    SYS_open_tree,
    SYS_perf_event_open,
    SYS_pidfd_getfd,
    SYS_pivot_root,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_ptrace,
    SYS_quotactl,
    SYS_reboot,
    SYS_request_key,
    SYS_setdomainname,
    SYS_sethostname,
    SYS_setns,
    SYS_settimeofday,
    SYS_swapoff,
    SYS_swapon,
    SYS_syslog,
    SYS_umount2,
    SYS_unshare,
    SYS_userfaultfd,
    SYS_vhangup,
#if defined(__x86_64__)
    SYS_ioperm,
    SYS_iopl,
    SYS_modify_ldt,
    SYS_uselib,
    SYS_create_module,
#endif
    442,  // mount_setattr: newer than the headers
};
constexpr long kAbsent[] = {SYS_clone3, SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register};

constexpr std::uint32_t kNewNamespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

sock_filter load(std::size_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)); }
sock_filter give(std::uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }
sock_filter unless_equal(std::uint32_t value, std::uint8_t skip) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip);
}

}  // namespace

std::vector<sock_filter> function_filter() {
  std::vector<sock_filter> program;
  if (kArchitecture == 0) return program;
  program.push_back(load(offsetof(seccomp_data, arch)));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
  program.push_back(give(SECCOMP_RET_KILL_PROCESS));
  program.push_back(load(offsetof(seccomp_data, nr)));
#if defined(__x86_64__)
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32, 0, 1));
  program.push_back(give(SECCOMP_RET_KILL_PROCESS));
#else
  static_cast<void>(kX32);
#endif
  for (const long number : kDenied) {
    program.push_back(unless_equal(static_cast<std::uint32_t>(number), 1));
    program.push_back(give(SECCOMP_RET_ERRNO | EPERM));
  }
  for (const long number : kAbsent) {
    program.push_back(unless_equal(static_cast<std::uint32_t>(number), 1));
    program.push_back(give(SECCOMP_RET_ERRNO | ENOSYS));
  }
  // clone's flags are its first argument; on a little-endian machine its lower half comes first.
  program.push_back(unless_equal(static_cast<std::uint32_t>(SYS_clone), 3));
  program.push_back(load(offsetof(seccomp_data, args)));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kNewNamespaces, 0, 1));
  program.push_back(give(SECCOMP_RET_ERRNO | EPERM));
  program.push_back(give(SECCOMP_RET_ALLOW));
  return program;
}

}  // namespace orla::function
