// Executables as functions, in the watchdog's modes: streaming and serializing start a process for each call, http
// keeps one that is spoken to over HTTP. See docs/functions.md, "Processes".
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/environment.h"
#include "function/isolation_sandbox.h"
#include "function/process_instance.h"
#include "function/runtime.h"

namespace orla::function {

class ProcessRuntime final : public Runtime {
 public:
  // Of `environment` only PATH, LANG and TZ are given to functions. `clock` outlives it.
  ProcessRuntime(const base::Clock& clock, const base::Environment& environment);
  // For tests: as if the machine permitted this.
  ProcessRuntime(const base::Clock& clock, const base::Environment& environment, Isolation isolation);

  std::string_view name() const override { return "process"; }
  absl::StatusOr<std::unique_ptr<Module>> load(const ModuleSpec& spec) override;

 private:
  const base::Clock& clock_;
  const base::FixedEnvironment environment_;
  std::mutex mutex_;
  std::optional<Isolation> isolation_;  // guarded by mutex_, as is tools_; both made by the first load
  std::unique_ptr<ProcessTools> tools_;
};

}  // namespace orla::function
