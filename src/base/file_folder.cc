#include "base/file_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/file_descriptor.h"
#include "base/files.h"

namespace orla::base {

namespace {

constexpr std::string_view kHalfWritten = ".new-";
constexpr std::string_view kDamaged = ".damaged-";

absl::Status check_name(std::string_view name) {
  if (name.empty() || name.front() == '.' || name.find('/') != std::string_view::npos ||
      name.find('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError(fmt::format("\"{}\" is not the name of a file in a folder", name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FileFolder> FileFolder::open(std::filesystem::path path) {
  if (absl::Status status = make_directories(path); !status.ok()) return status;
  if (::chmod(path.c_str(), 0700) != 0) {
    return errno_status(errno, fmt::format("cannot make the folder \"{}\" its owner's", path.native()));
  }
  std::error_code error;
  for (std::filesystem::directory_iterator at(path, error); !error && at != std::filesystem::directory_iterator();
       at.increment(error)) {
    if (at->path().filename().native().starts_with(kHalfWritten)) ::unlink(at->path().c_str());
  }
  if (error) return errno_status(error.value(), fmt::format("cannot list the folder \"{}\"", path.native()));
  return FileFolder(std::move(path));
}

absl::StatusOr<std::vector<std::string>> FileFolder::list() const {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(path_, error); !error && at != std::filesystem::directory_iterator();
       at.increment(error)) {
    std::error_code gone;
    if (at->symlink_status(gone).type() != std::filesystem::file_type::regular || gone) continue;
    std::string name = at->path().filename().native();
    if (!name.starts_with('.')) names.push_back(std::move(name));
  }
  if (error) return errno_status(error.value(), fmt::format("cannot list the folder \"{}\"", path_.native()));
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::string> FileFolder::read(const std::string& name, std::size_t max_bytes) const {
  if (absl::Status status = check_name(name); !status.ok()) return status;
  return read_file(path_ / name, max_bytes);
}

absl::Status FileFolder::write(const std::string& name, std::string_view bytes, FileMode mode) const {
  if (absl::Status status = check_name(name); !status.ok()) return status;
  const std::string temporary = (path_ / fmt::format("{}{}", kHalfWritten, name)).native();
  ::unlink(temporary.c_str());
  FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, static_cast<mode_t>(mode)));
  if (!file.valid()) return errno_status(errno, fmt::format("cannot create \"{}\"", temporary));
  const auto failed = [&](const char* what) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return errno_status(error, fmt::format("cannot {} \"{}\"", what, temporary));
  };
  while (!bytes.empty()) {
    const ssize_t n = ::write(file.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("write");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fsync(file.get()) != 0) return failed("sync");
  file.reset();
  if (::rename(temporary.c_str(), (path_ / name).c_str()) != 0) return failed("rename");
  return sync_names();
}

absl::Status FileFolder::remove(const std::string& name) const {
  if (absl::Status status = check_name(name); !status.ok()) return status;
  if (::unlink((path_ / name).c_str()) != 0 && errno != ENOENT) {
    return errno_status(errno, fmt::format("cannot remove \"{}\"", (path_ / name).native()));
  }
  return sync_names();
}

absl::Status FileFolder::set_aside(const std::string& name) const {
  if (absl::Status status = check_name(name); !status.ok()) return status;
  if (::rename((path_ / name).c_str(), (path_ / fmt::format("{}{}", kDamaged, name)).c_str()) != 0) {
    return errno_status(errno, fmt::format("cannot rename \"{}\"", (path_ / name).native()));
  }
  return sync_names();
}

absl::Status FileFolder::sync_names() const {
  const FileDescriptor directory(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid() || ::fsync(directory.get()) != 0) {
    return errno_status(errno, fmt::format("cannot sync the folder \"{}\"", path_.native()));
  }
  return absl::OkStatus();
}

}  // namespace orla::base
