// A small file system of its own in a folder.
#pragma once

#include <errno.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/mount.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace orla::behaviour {

class SmallDisk {
 public:
  SmallDisk(std::filesystem::path folder, std::size_t bytes) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
    const std::string options = fmt::format("size={},mode=700", bytes);
    if (::mount("none", folder_.c_str(), "tmpfs", 0, options.c_str()) != 0) why_not_ = ::strerror(errno);
  }
  ~SmallDisk() {
    if (why_not_.empty()) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  const std::string& why_not() const { return why_not_; }
  // Takes all room that is left.
  void fill() const {
    std::ofstream filler(folder_ / "filler", std::ios::binary | std::ios::app);
    const std::string block(4'096, 'x');
    while (filler.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void make_room() const { std::filesystem::remove(folder_ / "filler"); }

 private:
  const std::filesystem::path folder_;
  std::string why_not_;
};

}  // namespace orla::behaviour
