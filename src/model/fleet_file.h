// From the text of a fleet file to a Fleet that has passed every check, or to everything that is wrong with it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/fleet.h"
#include "model/fleet_error.h"

namespace orla::model {

// The value of an environment variable; nothing when it is not set. Values may use it as ${NAME} or ${NAME:-default}.
using EnvironmentLookup = std::function<std::optional<std::string>(std::string_view)>;

// The fleet when there are no errors.
struct ParsedFleet {
  std::optional<Fleet> fleet;
  std::vector<FleetError> errors;  // all of them, in the order of the file
};

// `filename` is for messages and, by its folder, for relative paths in the file. Touches no file (the zone database
// apart).
ParsedFleet parse_fleet(std::string_view text, const std::string& filename, const EnvironmentLookup& environment);

// Reads and parses. An error's message holds all errors, one per line, as compilers print them.
absl::StatusOr<Fleet> load_fleet(const std::filesystem::path& path, const EnvironmentLookup& environment);

// Whether the CSV files of the fleet's inputs (of the node's only, when one is named) can be read here. Not part of
// loading: an input's machine may be another one. The message has one line per file.
absl::Status check_files(const Fleet& fleet, std::string_view node = "");

}  // namespace orla::model
