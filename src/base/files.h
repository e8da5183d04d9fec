// Files and folders of the machine, with errors that name the path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace orla::base {

// The status of a failed system call: what was tried, errno's text, and a code after errno (ENOENT is NotFound, ...).
absl::Status errno_status(int error, std::string_view what);

// The whole file. Larger than `max_bytes` is an error (OutOfRange).
absl::StatusOr<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes);

// After success the file holds `bytes`, on disk; after a failure or a crash it holds those or what it held before. The
// folder exists already.
absl::Status write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

enum class FileMode : std::uint16_t { kAll = 0644, kOwner = 0600, kOwnerReads = 0400 };
// The same by way of the file `temporary` beside it, which a crash may leave behind and which is replaced.
absl::Status replace_file(const std::filesystem::path& path, const std::filesystem::path& temporary,
                          std::string_view bytes, FileMode mode);
// What its names mean is on disk.
absl::Status sync_folder(const std::filesystem::path& folder);

// The folder and those above it; fine when they exist.
absl::Status make_directories(const std::filesystem::path& path);

// The folder or file with everything in it; fine when there is none.
absl::Status remove_tree(const std::filesystem::path& path);

// Whether there is something at `path`; false too where that cannot be told.
bool exists(const std::filesystem::path& path);

// The machine's place for temporary files ($TMPDIR, /tmp).
std::filesystem::path temporary_place();

// A fresh folder, removed with everything in it at the end of its life.
class TemporaryDirectory {
 public:
  // In temporary_place().
  static absl::StatusOr<TemporaryDirectory> create(std::string_view prefix);
  TemporaryDirectory(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept;
  ~TemporaryDirectory();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;  // empty: moved from
};

}  // namespace orla::base
