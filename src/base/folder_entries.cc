#include "base/folder_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/files.h"

namespace orla::base {

absl::StatusOr<std::vector<std::filesystem::path>> folder_entries(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  if (error) return errno_status(error.value(), fmt::format("cannot list \"{}\"", folder.native()));
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace orla::base
