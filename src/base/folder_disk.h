// The Disk that is a folder of this machine.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/disk.h"

namespace orla::base {

// The folder exists. Subfolders and other things that are no plain files are not seen.
class FolderDisk final : public Disk {
 public:
  explicit FolderDisk(std::filesystem::path folder);

  absl::StatusOr<std::vector<Entry>> list() const override;
  absl::StatusOr<std::string> read(const std::string& name, std::uint64_t offset, std::size_t bytes) const override;
  absl::StatusOr<std::unique_ptr<AppendFile>> append(const std::string& name, std::uint64_t keep) override;
  absl::Status remove(const std::string& name) override;
  absl::Status sync_names() override;
  std::string boot() const override { return boot_; }
  std::string where() const override { return folder_.native(); }

 private:
  std::filesystem::path folder_;
  std::string boot_;
};

}  // namespace orla::base
