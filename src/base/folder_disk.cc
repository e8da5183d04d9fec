#include "base/folder_disk.h"

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

constexpr char kBootId[] = "/proc/sys/kernel/random/boot_id";

class FolderFile final : public AppendFile {
 public:
  FolderFile(FileDescriptor file, std::string path, std::uint64_t size)
      : file_(std::move(file)), path_(std::move(path)), size_(size) {}

  absl::Status append(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = ::write(file_.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno_status(errno, fmt::format("cannot write {} bytes to \"{}\"", bytes.size(), path_));
      size_ += static_cast<std::uint64_t>(n);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return absl::OkStatus();
  }

  absl::Status sync() override {
    if (::fdatasync(file_.get()) != 0) return errno_status(errno, fmt::format("cannot sync \"{}\"", path_));
    return absl::OkStatus();
  }

  std::uint64_t size() const override { return size_; }

 private:
  FileDescriptor file_;
  std::string path_;
  std::uint64_t size_;
};

}  // namespace

FolderDisk::FolderDisk(std::filesystem::path folder) : folder_(std::move(folder)) {
  const absl::StatusOr<std::string> boot = read_file(kBootId, 256);
  if (boot.ok()) boot_ = boot->substr(0, boot->find('\n'));
}

absl::StatusOr<std::vector<Disk::Entry>> FolderDisk::list() const {
  std::vector<Entry> out;
  std::error_code error;
  std::filesystem::directory_iterator at(folder_, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    std::error_code gone;  // removed meanwhile by a person: not there
    if (at->symlink_status(gone).type() != std::filesystem::file_type::regular || gone) continue;
    const std::uintmax_t bytes = at->file_size(gone);
    if (!gone) out.push_back({at->path().filename().native(), bytes});
  }
  if (error) return errno_status(error.value(), fmt::format("cannot list the folder \"{}\"", folder_.native()));
  std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return out;
}

absl::StatusOr<std::string> FolderDisk::read(const std::string& name, std::uint64_t offset, std::size_t bytes) const {
  const std::filesystem::path path = folder_ / name;
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid()) return errno_status(errno, fmt::format("cannot open \"{}\"", path.native()));
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return errno_status(errno, fmt::format("cannot ask \"{}\"", path.native()));
  const auto size = static_cast<std::uint64_t>(about.st_size);
  std::string out(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, size > offset ? size - offset : 0)), '\0');
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = ::pread(file.get(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const absl::Status status =
          errno_status(errno, fmt::format("cannot read \"{}\" at {}", path.native(), offset + done));
      return errno == EIO ? absl::DataLossError(status.message()) : status;
    }
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  out.resize(done);
  return out;
}

absl::StatusOr<std::unique_ptr<AppendFile>> FolderDisk::append(const std::string& name, std::uint64_t keep) {
  const std::filesystem::path path = folder_ / name;
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file.valid()) return errno_status(errno, fmt::format("cannot open \"{}\" for writing", path.native()));
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return errno_status(errno, fmt::format("cannot ask \"{}\"", path.native()));
  const auto size = static_cast<std::uint64_t>(about.st_size);
  if (size < keep) {
    return absl::DataLossError(
        fmt::format("\"{}\" has {} bytes; {} were to be kept: something else has cut it", path.native(), size, keep));
  }
  if (size > keep && ::ftruncate(file.get(), static_cast<off_t>(keep)) != 0) {
    return errno_status(errno, fmt::format("cannot cut \"{}\" to {} bytes", path.native(), keep));
  }
  return std::make_unique<FolderFile>(std::move(file), path.native(), keep);
}

absl::Status FolderDisk::remove(const std::string& name) {
  const std::filesystem::path path = folder_ / name;
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return errno_status(errno, fmt::format("cannot remove \"{}\"", path.native()));
  }
  return absl::OkStatus();
}

absl::Status FolderDisk::sync_names() { return sync_folder(folder_); }

}  // namespace orla::base
