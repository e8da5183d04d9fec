// Nothing is left of calls, whatever they did.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/folder_entries.h"
#include "function/wasm_for_test.h"

namespace orla::function {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kCalls = 500;
constexpr bool kMeasuresMemory = false;  // a sanitizer keeps what was freed
#else
constexpr int kCalls = 10'000;
constexpr bool kMeasuresMemory = true;
#endif

std::size_t resident_bytes() {
  const std::string statm = *base::read_file("/proc/self/statm", 4096);
  return std::stoull(statm.substr(statm.find(' '))) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}
std::size_t descriptors() { return base::folder_entries("/proc/self/fd")->size(); }

TEST(WasmLeaks, NothingAfterTenThousandCallsOfEachKind) {
  WasmForTest wasm;
  ModuleSpec command_spec = wasm.spec(built_wasm("test_command"));
  ModuleSpec handler_spec = wasm.spec(built_wasm("test_handler"));
  command_spec.options.memory_bytes = handler_spec.options.memory_bytes = 2 << 20;
  command_spec.log = handler_spec.log = nullptr;
  const auto command = wasm.load(command_spec);
  const auto handler = wasm.load(handler_spec);
  const auto commands = wasm.start(*command);
  const auto handlers = wasm.start(*handler);
  const auto run = [&](Instance& instance, const char* query) {
    CallForTest call("some bytes");
    call.head.query = query;
    return call.run(instance).end;
  };
  const auto round = [&](int calls) {
    for (int i = 0; i < calls; i += 8) {
      EXPECT_EQ(run(*commands, "echo"), CallEnd::kDone);
      EXPECT_EQ(run(*commands, "exit3"), CallEnd::kFailed);
      EXPECT_EQ(run(*commands, "abort"), CallEnd::kFailed);
      EXPECT_EQ(run(*handlers, "echo"), CallEnd::kDone);
      EXPECT_EQ(run(*handlers, "five"), CallEnd::kFailed);
      EXPECT_EQ(run(*handlers, "trap"), CallEnd::kFailed);
      EXPECT_EQ(run(*handlers, "outside"), CallEnd::kFailed);
      EXPECT_EQ(run(*handlers, "head"), CallEnd::kDone);
      if (i % 800 == 0) {
        EXPECT_EQ(run(*commands, "grow"), CallEnd::kOutOfMemory);
      }
    }
  };
  round(kCalls / 10);
  const std::size_t memory = resident_bytes();
  const std::size_t open = descriptors();
  round(kCalls);
  EXPECT_EQ(descriptors(), open);
  if (kMeasuresMemory) {
    EXPECT_LT(resident_bytes(), memory + (4 << 20));
  }
}

// Each in its turn: what one call does is not felt by another replica's.
TEST(WasmLeaks, ABadNeighbourIsNotFelt) {
  WasmForTest wasm;
  ModuleSpec bad_spec = wasm.spec(built_wasm("test_command"));
  bad_spec.options.memory_bytes = 32 << 20;
  bad_spec.options.exec_timeout = std::chrono::milliseconds(200);
  const auto bad_module = wasm.load(bad_spec);
  const auto bad = wasm.start(*bad_module);
  const auto good_module = wasm.load(wasm.spec(built_wasm("test_handler")));
  const auto good = wasm.start(*good_module);
  std::atomic<bool> over{false};
  std::thread neighbour([&] {
    for (const char* what : {"loop", "grow", "line", "deep", "loop"}) {
      CallForTest call;
      call.head.query = what;
      call.run(*bad);
    }
    over = true;
  });
  int calls = 0;
  for (; !over; ++calls) {
    CallForTest call("hello");
    ASSERT_EQ(call.run(*good).end, CallEnd::kDone);
    ASSERT_EQ(call.response.body(), "hello");
  }
  neighbour.join();
  EXPECT_GT(calls, 0);
}

}  // namespace
}  // namespace orla::function
