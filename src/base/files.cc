#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/file_descriptor.h"

namespace orla::base {

absl::Status errno_status(int error, std::string_view what) {
  return absl::Status(absl::ErrnoToStatusCode(error),
                      fmt::format("{}: {}", what, std::generic_category().message(error)));
}

absl::StatusOr<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return errno_status(errno, fmt::format("cannot open \"{}\"", path.native()));
  std::string bytes;
  struct stat about {};
  if (::fstat(file.get(), &about) == 0 && about.st_size > 0 && static_cast<std::size_t>(about.st_size) <= max_bytes) {
    bytes.reserve(static_cast<std::size_t>(about.st_size) + 1);
  }
  char block[1 << 16];
  while (true) {
    const ssize_t n = ::read(file.get(), block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_status(errno, fmt::format("cannot read \"{}\"", path.native()));
    if (n == 0) return bytes;
    if (bytes.size() + static_cast<std::size_t>(n) > max_bytes) {
      return absl::OutOfRangeError(
          fmt::format("\"{}\" is too large: more than the {} bytes that are read", path.native(), max_bytes));
    }
    bytes.append(block, static_cast<std::size_t>(n));
  }
}

absl::Status write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  // Beside the file, so that the rename stays on one file system; of this process, so that two writers do not meet.
  return replace_file(path, fmt::format("{}.{}.new", path.native(), ::getpid()), bytes, FileMode::kAll);
}

absl::Status replace_file(const std::filesystem::path& path, const std::filesystem::path& temporary,
                          std::string_view bytes, FileMode mode) {
  ::unlink(temporary.c_str());
  FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, static_cast<mode_t>(mode)));
  if (!file.valid()) return errno_status(errno, fmt::format("cannot create \"{}\"", temporary.native()));
  const auto failed = [&](const char* what) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return errno_status(error, fmt::format("cannot {} \"{}\"", what, temporary.native()));
  };
  while (!bytes.empty()) {
    const ssize_t n = ::write(file.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("write");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fsync(file.get()) != 0) return failed("sync");
  file.reset();
  if (::rename(temporary.c_str(), path.c_str()) != 0) return failed("rename");
  return sync_folder(path.has_parent_path() ? path.parent_path() : std::filesystem::path("."));
}

absl::Status sync_folder(const std::filesystem::path& folder) {
  const FileDescriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid() || ::fsync(directory.get()) != 0) {
    return errno_status(errno, fmt::format("cannot sync the folder \"{}\"", folder.native()));
  }
  return absl::OkStatus();
}

absl::Status make_directories(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return errno_status(error.value(), fmt::format("cannot make the folder \"{}\"", path.native()));
  return absl::OkStatus();
}

absl::Status remove_tree(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return errno_status(error.value(), fmt::format("cannot remove \"{}\"", path.native()));
  return absl::OkStatus();
}

bool exists(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

std::filesystem::path temporary_place() {
  std::error_code error;
  const std::filesystem::path place = std::filesystem::temp_directory_path(error);
  return error ? std::filesystem::path("/tmp") : place;
}

absl::StatusOr<TemporaryDirectory> TemporaryDirectory::create(std::string_view prefix) {
  std::error_code error;
  const std::filesystem::path where = std::filesystem::temp_directory_path(error);
  if (error) return errno_status(error.value(), "no folder for temporary files (TMPDIR)");
  std::string name = (where / fmt::format("{}-XXXXXX", prefix)).native();
  if (::mkdtemp(name.data()) == nullptr) {
    return errno_status(errno, fmt::format("cannot make a temporary folder \"{}\"", name));
  }
  return TemporaryDirectory(std::move(name));
}

TemporaryDirectory::TemporaryDirectory(TemporaryDirectory&& other) noexcept
    : path_(std::exchange(other.path_, std::filesystem::path())) {}

TemporaryDirectory& TemporaryDirectory::operator=(TemporaryDirectory&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TemporaryDirectory::~TemporaryDirectory() {
  if (!path_.empty()) remove_tree(path_).IgnoreError();
}

}  // namespace orla::base
