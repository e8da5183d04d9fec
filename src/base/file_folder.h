// A flat folder of small files of which each is replaced as a whole: after success a file is on disk, after a failure
// or a crash it holds what it held before.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files.h"

namespace orla::base {

// One owner process; operations on different names may run on different threads. Names are plain file names that do not
// begin with '.'.
class FileFolder {
 public:
  // Makes it, readable by its owner only, and removes what a crash left half written.
  static absl::StatusOr<FileFolder> open(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  // Names, sorted.
  absl::StatusOr<std::vector<std::string>> list() const;
  absl::StatusOr<std::string> read(const std::string& name, std::size_t max_bytes) const;
  absl::Status write(const std::string& name, std::string_view bytes, FileMode mode) const;
  // Fine when there is none.
  absl::Status remove(const std::string& name) const;
  // Renames it to ".damaged-NAME", which list() does not show; one that lies there already is replaced.
  absl::Status set_aside(const std::string& name) const;

 private:
  explicit FileFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// Of a file anywhere; one that has the new name is replaced.
absl::Status rename_file(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace orla::base
