// WebAssembly functions for tests: the modules of tests/functions, and text.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "function/call_for_test.h"
#include "function/wasm_runtime.h"

namespace orla::function {

// A module that the build made, beside the program's folder.
inline std::filesystem::path built_wasm(std::string_view name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "functions" /
         (std::string(name) + ".wasm");
}

// A runtime with a folder of its own.
class WasmForTest {
 public:
  WasmForTest() : place_(*base::TemporaryDirectory::create("orla-wasm")) { restart(); }

  // As after a restart of the node: nothing is in memory.
  void restart() {
    runtime = nullptr;
    runtime = make_wasm_runtime({}, place_.path() / "modules", clock);
  }
  const std::filesystem::path& place() const { return place_.path(); }

  ModuleSpec spec(const std::filesystem::path& image) {
    ModuleSpec spec;
    spec.spec.key.name = "sample";
    spec.spec.image = image.filename().native();
    spec.image = image;
    spec.log = &lines;
    return spec;
  }
  std::unique_ptr<Module> load(const ModuleSpec& spec) {
    absl::StatusOr<std::unique_ptr<Module>> module = runtime->load(spec);
    EXPECT_TRUE(module.ok()) << module.status();
    return module.ok() ? *std::move(module) : nullptr;
  }
  std::unique_ptr<Instance> start(Module& module) {
    Cancellation cancellation;
    absl::StatusOr<std::unique_ptr<Instance>> instance =
        module.start("sample-1", clock.steady_now() + std::chrono::seconds(10), cancellation);
    EXPECT_TRUE(instance.ok()) << instance.status();
    return instance.ok() ? *std::move(instance) : nullptr;
  }

  base::SystemClock clock;
  KeptLines lines;
  std::unique_ptr<Runtime> runtime;

 private:
  base::TemporaryDirectory place_;
};

}  // namespace orla::function
