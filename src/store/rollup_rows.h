// What the file knows of its rollups: for readers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/time.h"
#include "store/sqlite.h"

namespace orla::store {

struct WindowInfo {
  std::string name;
  bool hidden = false;
  std::optional<model::Time> first;  // start of the first window that has rows, and of the last
  std::optional<model::Time> last;
};

struct RollupInfo {
  std::string name;
  bool hidden = false;
  std::string metric;
  std::string unit;
  int decimals = 0;
  std::vector<std::string> labels;  // in order; empty for whole series
  std::string across;               // "sum", ...; empty for merge rollups
  bool quantiles = false;
  std::vector<std::string> distinct;  // labels whose combinations are counted
  model::Duration allowed_lateness{};
  model::Time published = model::kMinTime;
  std::uint64_t groups = 0;
  std::vector<WindowInfo> windows;
  std::vector<WindowInfo> steps;  // of forecasts
};

// By name; only those whose definition is the present one.
absl::StatusOr<std::vector<RollupInfo>> read_rollups(Database& database);

}  // namespace orla::store
