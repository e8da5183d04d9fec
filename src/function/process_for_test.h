// Process functions for tests: scripts in a directory, loaded and started.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/environment.h"
#include "base/files.h"
#include "function/call_for_test.h"
#include "function/process_runtime.h"

namespace orla::function {

// One image directory, one runtime, one spec to fill in, one replica.
class ProcessFunctionForTest {
 public:
  ProcessFunctionForTest() : folder_(*base::TemporaryDirectory::create("orla-process-test-")) {
    spec.spec.key.name = "fn";
    spec.log = &log;
    spec.image = folder_.path();
    ::chmod(folder_.path().c_str(), 0755);
  }

  // An executable file of the image.
  std::filesystem::path script(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_.path() / name;
    EXPECT_TRUE(base::write_file_atomically(path, text).ok());
    ::chmod(path.c_str(), 0755);
    return path;
  }
  // Runs `text` as a shell script.
  void shell(const std::string& text) { spec.image = script("run.sh", "#!/bin/sh\n" + text); }
  void python(const std::string& text) { spec.image = script("run.py", "#!/usr/bin/python3\n" + text); }

  absl::Status load() {
    absl::StatusOr<std::unique_ptr<Module>> loaded = runtime.load(spec);
    if (!loaded.ok()) return loaded.status();
    module = *std::move(loaded);
    return absl::OkStatus();
  }
  absl::Status start(std::chrono::seconds patience = std::chrono::seconds(20)) {
    if (absl::Status loaded = load(); !loaded.ok()) return loaded;
    absl::StatusOr<std::unique_ptr<Instance>> started =
        module->start("fn-1", clock.steady_now() + patience, cancellation);
    if (!started.ok()) return started.status();
    instance = *std::move(started);
    return absl::OkStatus();
  }

  base::SystemClock clock;
  base::FixedEnvironment environment{
      {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"LANG", "C.UTF-8"}, {"OWN", "hidden"}}};
  KeptLines log;
  ModuleSpec spec;
  Cancellation cancellation;

 private:
  base::TemporaryDirectory folder_;

 public:
  ProcessRuntime runtime{clock, environment};
  std::unique_ptr<Module> module;
  std::unique_ptr<Instance> instance;
};

// Of this process: children that are not reaped yet, and open descriptors.
std::size_t children_of_this_process();
std::size_t descriptors_of_this_process();

}  // namespace orla::function
