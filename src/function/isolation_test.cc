// What processes of functions can see and do. Skips what the machine does not permit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "function/process_for_test.h"

namespace orla::function {
namespace {

using std::chrono::seconds;
using ::testing::Contains;
using ::testing::HasSubstr;

const Isolation& machine() {
  static const Isolation found = probe_isolation();
  return found;
}
#define NEEDS_NAMESPACES()                                                           \
  if (machine().namespaces == Isolation::Namespaces::kNone) {                        \
    GTEST_SKIP() << "no namespaces on this machine: " << machine().namespaces_error; \
  }

std::string run(ProcessFunctionForTest& fn, const std::string& script) {
  fn.shell("exec 2>&1\n" + script);
  const absl::Status started = fn.start();
  EXPECT_TRUE(started.ok()) << started;
  if (!started.ok()) return "";
  CallForTest call;
  const CallResult result = call.run(*fn.instance);
  EXPECT_EQ(result.end, CallEnd::kDone) << result.message;
  return call.response.body();
}

TEST(Isolation, AFunctionIsNobodyWithoutPrivileges) {
  NEEDS_NAMESPACES();
  ProcessFunctionForTest fn;
  const std::string uid = std::to_string(::geteuid() == 0 ? kFunctionUser : ::geteuid());
  EXPECT_EQ(run(fn, "id -u; id -g; echo $$\n"), uid + "\n" + uid + "\n1\n");
  const std::string status = run(fn, "cat /proc/self/status\n");
  EXPECT_THAT(status, HasSubstr("CapEff:\t0000000000000000"));
  EXPECT_THAT(status, HasSubstr("CapPrm:\t0000000000000000"));
  EXPECT_THAT(status, HasSubstr("CapBnd:\t0000000000000000"));
  EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1"));
  EXPECT_THAT(status, HasSubstr("Seccomp:\t2"));
}

TEST(Isolation, SeesOnlyItsOwnProcessesAndItsOwnFiles) {
  NEEDS_NAMESPACES();
  ProcessFunctionForTest fn;
  EXPECT_EQ(run(fn, "ls -d /proc/[0-9]* | head -1; ls /proc | grep -c '^[0-9]'\n").substr(0, 8), "/proc/1\n");
  const absl::StatusOr<base::TemporaryDirectory> other = base::TemporaryDirectory::create("orla-other-");
  ASSERT_TRUE(base::write_file_atomically(other->path() / "file", "hidden").ok());
  EXPECT_THAT(run(fn, "cat " + (other->path() / "file").string() + "\n"), HasSubstr("No such file"));
  EXPECT_EQ(run(fn, "ls -A /\n").find("root"), std::string::npos);
}

TEST(Isolation, WritesToItsOwnPlacesOnly) {
  NEEDS_NAMESPACES();
  ProcessFunctionForTest fn;
  EXPECT_EQ(run(fn, "echo x > /tmp/a && cat /tmp/a; echo y > /dev/shm/b && cat /dev/shm/b; echo z >/dev/null\n"),
            "x\ny\n");
  EXPECT_EQ(run(fn, "mkdir /data && echo w > /data/c && cat /data/c\n"), "w\n");
  EXPECT_THAT(run(fn, "echo x > " + (fn.spec.image.parent_path() / "run.sh").string() + "\n"),
              HasSubstr("annot create"));
  EXPECT_THAT(run(fn, "touch /usr/bin/x\n"), HasSubstr("Read-only"));
  fn.spec.spec.read_only_root = true;
  EXPECT_THAT(run(fn, "mkdir /data\n"), HasSubstr("Read-only"));
  EXPECT_EQ(run(fn, "echo x > /tmp/a && cat /tmp/a\n"), "x\n");
}

TEST(Isolation, SecretsAreReadOnlyFiles) {
  NEEDS_NAMESPACES();
  ProcessFunctionForTest fn;
  const absl::StatusOr<base::TemporaryDirectory> folder = base::TemporaryDirectory::create("orla-secret-");
  ASSERT_TRUE(base::write_file_atomically(folder->path() / "content", std::string("a\0b", 3)).ok());
  fn.spec.secrets = {{"token", folder->path() / "content"}};
  EXPECT_EQ(
      run(fn, "cat /var/openfaas/secrets/token; stat -c ' %a' /var/openfaas/secrets/token; echo $secret_mount_path\n"),
      std::string("a\0b", 3) + " 400\n/var/openfaas/secrets\n");
  EXPECT_THAT(run(fn, "chmod 600 /var/openfaas/secrets/token || rm -f /var/openfaas/secrets/token\n"),
              HasSubstr("Read-only"));
}

TEST(Isolation, RefusesDangerousSystemCalls) {
  ProcessFunctionForTest fn;
  fn.python(R"(
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    r = getattr(libc, name)(*args)
    print(name, errno.errorcode.get(ctypes.get_errno(), 'fine') if r < 0 else 'fine')
call('mount', b'none', b'/tmp', b'tmpfs', 0, None)
call('unshare', 0x10000000)
call('ptrace', 16, 1, 0, 0)
call('sethostname', b'x', 1)
call('reboot', 0)
call('setns', 0, 0)
call('getpid')
)");
  ASSERT_TRUE(fn.start().ok());
  CallForTest call;
  ASSERT_EQ(call.run(*fn.instance).end, CallEnd::kDone);
  EXPECT_EQ(call.response.body(),
            "mount EPERM\nunshare EPERM\nptrace EPERM\nsethostname EPERM\nreboot EPERM\nsetns EPERM\ngetpid fine\n");
}

TEST(Isolation, ThreadsAndChildProcessesWork) {
  ProcessFunctionForTest fn;
  fn.python(R"(
import subprocess, threading
t = threading.Thread(target=lambda: print('thread', flush=True)); t.start(); t.join()
print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout, end='')
)");
  ASSERT_TRUE(fn.start().ok());
  CallForTest call;
  ASSERT_EQ(call.run(*fn.instance).end, CallEnd::kDone);
  EXPECT_EQ(call.response.body(), "thread\nchild\n");
}

TEST(Isolation, AForkBombEndsWithItsCall) {
  NEEDS_NAMESPACES();
  ProcessFunctionForTest fn;
  fn.shell("f() { f | f & }; f; sleep 30\n");
  fn.spec.options.exec_timeout = std::chrono::milliseconds(700);
  ASSERT_TRUE(fn.start().ok());
  CallForTest call;
  EXPECT_EQ(call.run(*fn.instance).end, CallEnd::kTimedOut);
  EXPECT_EQ(children_of_this_process(), 0U);
  // Another replica is not short of processes meanwhile, nor after.
  EXPECT_EQ(run(fn, "echo fine | cat\n"), "fine\n");
}

TEST(Isolation, MemoryHasALimit) {
  if (!machine().cgroups.memory.has_value()) GTEST_SKIP() << "no memory cgroup can be written on this machine";
  ProcessFunctionForTest fn;
  fn.python("x = []\nwhile True: x.append(bytearray(1 << 20))\n");
  fn.spec.options.memory_bytes = 64 << 20;
  fn.spec.options.exec_timeout = seconds(20);
  ASSERT_TRUE(fn.start().ok());
  CallForTest call;
  const CallResult result = call.run(*fn.instance);
  EXPECT_EQ(result.end, CallEnd::kOutOfMemory) << result.message;
  EXPECT_TRUE(result.instance_usable);
  fn.instance.reset();
  fn.python("print(len(bytearray(8 << 20)))\n");
  ASSERT_TRUE(fn.start().ok());
  CallForTest small;
  EXPECT_EQ(small.run(*fn.instance).end, CallEnd::kDone);
  EXPECT_EQ(small.response.body(), "8388608\n");
}

TEST(Isolation, ProcessorTimeHasALimit) {
  if (!machine().cgroups.cpu.has_value()) GTEST_SKIP() << "no cpu cgroup can be written on this machine";
  ProcessFunctionForTest fn;
  fn.spec.options.cpu_cores = 0.2;
  fn.python(
      "import time\nb=time.monotonic(); c=time.process_time()\nwhile time.monotonic()-b < 1.0: "
      "pass\nprint(int(100*(time.process_time()-c)))\n");
  ASSERT_TRUE(fn.start().ok());
  CallForTest call;
  ASSERT_EQ(call.run(*fn.instance).end, CallEnd::kDone);
  EXPECT_LT(std::stoi(call.response.body()), 45);
}

TEST(Isolation, WithoutANetworkThereIsOnlyItsLoopback) {
  NEEDS_NAMESPACES();
  ProcessFunctionForTest fn;
  fn.spec.spec.annotations["com.orla.process.network"] = "none";
  fn.spec.options.mode = WatchdogMode::kHttp;
  fn.python(R"(
import os, http.server
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = (' '.join(l.split(':')[0].strip() for l in open('/proc/net/dev').readlines()[2:]) + ' ' + os.environ['PORT']).encode()
        self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers(); self.wfile.write(body)
http.server.ThreadingHTTPServer(('127.0.0.1', int(os.environ['PORT'])), H).serve_forever()
)");
  ASSERT_TRUE(fn.start().ok());
  Cancellation cancellation;
  // Each has a loopback of its own, and so the same port.
  const auto second = fn.module->start("fn-2", fn.clock.steady_now() + seconds(20), cancellation);
  ASSERT_TRUE(second.ok()) << second.status();
  for (Instance* instance : {fn.instance.get(), second->get()}) {
    CallForTest call;
    call.head.method = "GET";
    ASSERT_EQ(call.run(*instance).end, CallEnd::kDone);
    EXPECT_EQ(call.response.body(), "lo 8082");
  }
}

TEST(Isolation, WhatTheMachineLacksIsSaid) {
  const base::SystemClock clock;
  const base::FixedEnvironment environment({});
  Isolation bare;
  bare.namespaces_error = "tried";
  ProcessRuntime runtime(clock, environment, bare);
  ProcessFunctionForTest fn;
  fn.shell("cat $secret_mount_path/token; id -u; cat /proc/self/status | grep NoNewPrivs\n");
  const absl::StatusOr<base::TemporaryDirectory> folder = base::TemporaryDirectory::create("orla-secret-");
  ASSERT_TRUE(base::write_file_atomically(folder->path() / "content", "s3cret ").ok());
  fn.spec.secrets = {{"token", folder->path() / "content"}};
  fn.spec.spec.read_only_root = true;
  fn.spec.options.memory_bytes = 1 << 20;
  fn.spec.options.cpu_cores = 1;
  const auto module = runtime.load(fn.spec);
  ASSERT_TRUE(module.ok());
  const std::vector<std::string> notes = (*module)->notes();
  for (const char* what : {"isolation: no namespaces on this machine (tried)", "readOnlyRootFilesystem is not applied",
                           "secret_mount_path", "limits.memory is not applied", "limits.cpu is not applied",
                           "the number of processes is not limited"}) {
    EXPECT_THAT(notes, Contains(HasSubstr(what)));
  }
  Cancellation cancellation;
  const auto instance = (*module)->start("fn-1", clock.steady_now() + seconds(20), cancellation);
  ASSERT_TRUE(instance.ok()) << instance.status();
  CallForTest call;
  EXPECT_EQ(call.run(**instance).end, CallEnd::kDone);
  EXPECT_EQ(call.response.body(), "s3cret " + std::to_string(::geteuid()) + "\nNoNewPrivs:\t1\n");
}

TEST(Isolation, InAUserNamespaceOfItsOwnAsWell) {
  // As a node that is not root has it. Root may do the same.
  const base::SystemClock clock;
  const base::FixedEnvironment environment({});
  Isolation owned;
  owned.namespaces = Isolation::Namespaces::kUserOwned;
  ProcessRuntime runtime(clock, environment, owned);
  ProcessFunctionForTest fn;
  fn.shell(
      "echo $$; id -u; ls /tmp | wc -l; (setsid sleep 611 &) ; echo x > /tmp/y && cat /tmp/y; grep CapEff "
      "/proc/self/status\n");
  const auto module = runtime.load(fn.spec);
  ASSERT_TRUE(module.ok());
  Cancellation cancellation;
  const auto instance = (*module)->start("fn-1", clock.steady_now() + seconds(20), cancellation);
  if (!instance.ok()) GTEST_SKIP() << "no user namespaces on this machine: " << instance.status();
  CallForTest call;
  const CallResult result = call.run(**instance);
  EXPECT_EQ(result.end, CallEnd::kDone) << result.message;
  EXPECT_THAT(call.response.body(),
              HasSubstr("1\n" + std::to_string(::geteuid()) + "\n1\nx\nCapEff:\t0000000000000000"));
  EXPECT_EQ(children_of_this_process(), 0U);
}

TEST(Cgroups, AreFoundInBothVersions) {
  // Of a machine with version 1; places that cannot be written are none, so only the parsing is seen here.
  const CgroupPlaces none = find_cgroups("", "");
  EXPECT_FALSE(none.memory.has_value());
  const absl::StatusOr<base::TemporaryDirectory> folder = base::TemporaryDirectory::create("orla-cgroup-");
  const std::string root = folder->path().string();
  ASSERT_TRUE(base::make_directories(folder->path() / "memory" / "a").ok());
  ASSERT_TRUE(base::make_directories(folder->path() / "two" / "b").ok());
  ASSERT_TRUE(base::write_file_atomically(folder->path() / "two/b/cgroup.controllers", "cpu pids\n").ok());
  ASSERT_TRUE(base::write_file_atomically(folder->path() / "two/b/cgroup.subtree_control", "cpu pids\n").ok());
  const std::string mounts = "30 24 0:26 / " + root + "/memory rw - cgroup cgroup rw,memory\n" + "31 24 0:27 /c " +
                             root + "/two rw shared:9 - cgroup2 cgroup2 rw\n";
  const CgroupPlaces found = find_cgroups(mounts, "4:memory:/a\n0::/c/b\n");
  ASSERT_TRUE(found.memory.has_value());
  EXPECT_EQ(found.memory->path, folder->path() / "memory/a");
  EXPECT_EQ(found.memory->version, CgroupPlaces::Version::kOne);
  ASSERT_TRUE(found.pids.has_value());
  EXPECT_EQ(found.pids->path, folder->path() / "two/b");
  EXPECT_EQ(found.pids->version, CgroupPlaces::Version::kTwo);
  EXPECT_TRUE(found.cpu.has_value());
  EXPECT_FALSE(found.cpuacct.has_value());
}

}  // namespace
}  // namespace orla::function
