#include "base/file_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

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
  return replace_file(path_ / name, path_ / fmt::format("{}{}", kHalfWritten, name), bytes, mode);
}

absl::Status FileFolder::remove(const std::string& name) const {
  if (absl::Status status = check_name(name); !status.ok()) return status;
  if (::unlink((path_ / name).c_str()) != 0 && errno != ENOENT) {
    return errno_status(errno, fmt::format("cannot remove \"{}\"", (path_ / name).native()));
  }
  return sync_folder(path_);
}

absl::Status FileFolder::set_aside(const std::string& name) const {
  if (absl::Status status = check_name(name); !status.ok()) return status;
  if (::rename((path_ / name).c_str(), (path_ / fmt::format("{}{}", kDamaged, name)).c_str()) != 0) {
    return errno_status(errno, fmt::format("cannot rename \"{}\"", (path_ / name).native()));
  }
  return sync_folder(path_);
}

absl::Status rename_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return errno_status(errno, fmt::format("cannot rename \"{}\" to \"{}\"", from.string(), to.string()));
}

}  // namespace orla::base
