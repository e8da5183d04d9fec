#include "base/spawner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>

#include "base/files.h"
#include "base/signals.h"

namespace orla::base {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using Stream = ChildProcess::Stream;

ProcessSpec shell(std::string script) {
  ProcessSpec spec;
  spec.argv = {"sh", "-c", std::move(script)};
  return spec;
}

std::unique_ptr<ChildProcess> started(Spawner& spawner, const ProcessSpec& spec) {
  absl::StatusOr<std::unique_ptr<ChildProcess>> child = spawner.start(spec);
  EXPECT_TRUE(child.ok()) << child.status();
  return child.ok() ? *std::move(child) : nullptr;
}

// Neither running nor a zombie.
bool gone(int pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

TEST(Spawner, TellsHowAChildEnded) {
  SystemSpawner spawner;
  EXPECT_EQ(started(spawner, shell("exit 0"))->wait(seconds(10)), (ExitStatus{0, 0}));
  EXPECT_EQ(started(spawner, shell("exit 3"))->wait(seconds(10)), (ExitStatus{3, 0}));
  EXPECT_EQ(started(spawner, shell("kill -9 $$"))->wait(seconds(10)), (ExitStatus{0, SIGKILL}));
  EXPECT_EQ(to_string(ExitStatus{3, 0}), "exit code 3");
  EXPECT_EQ(to_string(ExitStatus{0, SIGKILL}), "signal 9 (Killed)");
}

TEST(Spawner, AProgramThatCannotRunIsAnError) {
  SystemSpawner spawner;
  ProcessSpec spec;
  EXPECT_EQ(spawner.start(spec).status().code(), absl::StatusCode::kInvalidArgument);
  spec.argv = {"orla-no-such-program"};
  const absl::Status missing = spawner.start(spec).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("orla-no-such-program"));
  spec = shell("exit 0");
  spec.directory = "no-such-folder";
  EXPECT_THAT(std::string(spawner.start(spec).status().message()), HasSubstr("no-such-folder"));
}

TEST(Spawner, WaitsNoLongerThanAsked) {
  SystemSpawner spawner;
  const auto child = started(spawner, shell("exec sleep 100"));
  EXPECT_EQ(child->poll(), std::nullopt);
  EXPECT_EQ(child->wait(milliseconds(20)), std::nullopt);
  child->terminate();
  EXPECT_EQ(child->wait(seconds(10)), (ExitStatus{0, SIGTERM}));
  EXPECT_EQ(child->poll(), (ExitStatus{0, SIGTERM}));
  child->kill();  // nothing: it has ended
}

TEST(Spawner, ReadsLinesFromPipes) {
  SystemSpawner spawner;
  ProcessSpec spec = shell("echo one; echo two; echo wrong >&2; printf last");
  spec.output = Output::pipe();
  spec.errors = Output::pipe();
  const auto child = started(spawner, spec);
  EXPECT_EQ(*child->read_line(Stream::kOutput, seconds(10)), "one");
  EXPECT_EQ(*child->read_line(Stream::kErrors, seconds(10)), "wrong");
  EXPECT_EQ(*child->read_line(Stream::kOutput, seconds(10)), "two");
  EXPECT_EQ(*child->read_line(Stream::kOutput, seconds(10)), "last");
  EXPECT_EQ(child->read_line(Stream::kOutput, seconds(10)).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(Spawner, ReadingALineHasATimeout) {
  SystemSpawner spawner;
  ProcessSpec spec = shell("printf half; exec sleep 100");
  spec.output = Output::pipe();
  const auto child = started(spawner, spec);
  EXPECT_EQ(child->read_line(Stream::kOutput, milliseconds(50)).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(Spawner, AppendsToFilesAndPassesFolderAndEnvironment) {
  absl::StatusOr<TemporaryDirectory> folder = TemporaryDirectory::create("orla-spawner-test");
  ASSERT_TRUE(folder.ok());
  SystemSpawner spawner;
  ProcessSpec spec = shell("pwd; echo $ORLA_TEST_GREETING; ls /proc/self/fd | tr '\\n' ' '");
  spec.directory = folder->path();
  spec.environment = {{"ORLA_TEST_GREETING", "hello world"}};
  spec.output = Output::file((folder->path() / "log").native());
  spec.errors = Output::discarded();
  ASSERT_TRUE(write_file_atomically(folder->path() / "log", "before\n").ok());
  EXPECT_EQ(started(spawner, spec)->wait(seconds(10)), (ExitStatus{0, 0}));
  // `ls` itself holds the folder it lists as 3: nothing else was inherited.
  EXPECT_EQ(*read_file(folder->path() / "log", 4096), "before\n" + folder->path().native() + "\nhello world\n0 1 2 3 ");
}

TEST(Spawner, AChildIsKilledAndReapedWithItsOwner) {
  SystemSpawner spawner;
  int pid = 0;
  {
    ProcessSpec spec = shell("trap '' TERM; echo ready; while :; do sleep 0.05; done");
    spec.output = Output::pipe();
    const auto child = started(spawner, spec);
    pid = child->pid();
    ASSERT_EQ(*child->read_line(Stream::kOutput, seconds(10)), "ready");
  }
  EXPECT_TRUE(gone(pid));
}

TEST(Spawner, ChildrenHaveNoBlockedOrIgnoredSignals) {
  ignore_sigpipe();
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  SystemSpawner spawner;
  ProcessSpec spec = shell("grep -E '^Sig(Blk|Ign)' /proc/self/status");
  spec.output = Output::pipe();
  const auto child = started(spawner, spec);
  EXPECT_EQ(*child->read_line(Stream::kOutput, seconds(10)), "SigBlk:\t0000000000000000");
  EXPECT_EQ(*child->read_line(Stream::kOutput, seconds(10)), "SigIgn:\t0000000000000000");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(Spawner, AChildGoesWithItsParent) {
  // A middle process with a child of its own dies by SIGKILL; the grandchild is told. The end of the thread that forked
  // is the parent's death to the kernel, so here the spawner, whose thread it is, plays the process.
  auto spawner = std::make_unique<SystemSpawner>();
  const auto child = started(*spawner, shell("exec sleep 100"));
  spawner.reset();
  EXPECT_EQ(child->wait(seconds(10)), (ExitStatus{0, SIGTERM}));
}

TEST(RunToEnd, ReturnsBothOutputsAndTheStatus) {
  // More than a pipe holds, on both.
  const absl::StatusOr<Finished> finished = run_to_end(
      shell("head -c 300000 /dev/zero | tr '\\0' a; head -c 300000 /dev/zero | tr '\\0' b >&2; exit 5"), seconds(30));
  ASSERT_TRUE(finished.ok()) << finished.status();
  EXPECT_EQ(finished->status, (ExitStatus{5, 0}));
  EXPECT_EQ(finished->output, std::string(300000, 'a'));
  EXPECT_EQ(finished->errors, std::string(300000, 'b'));
}

TEST(RunToEnd, KillsAtItsBounds) {
  const absl::Status late = run_to_end(shell("echo so far; exec sleep 100"), milliseconds(100)).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(late.message()), HasSubstr("so far"));
  EXPECT_EQ(run_to_end(shell("yes"), seconds(30), 1000).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace orla::base
