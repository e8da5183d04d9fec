// What lies in a folder.
#pragma once

#include <filesystem>
#include <vector>

#include "absl/status/statusor.h"

namespace orla::base {

// The paths of its files and folders (`folder` and a name), sorted; not of those further down.
absl::StatusOr<std::vector<std::filesystem::path>> folder_entries(const std::filesystem::path& folder);

}  // namespace orla::base
