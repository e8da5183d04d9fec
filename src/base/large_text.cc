#include "base/large_text.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/files.h"

namespace orla::base {

namespace {
constexpr std::size_t kFirstBytes = std::size_t{64} << 10;  // pages that are not used cost nothing
}  // namespace

LargeText::~LargeText() {
  if (bytes_ != nullptr) ::munmap(bytes_, room_);
}

LargeText::LargeText(LargeText&& other) noexcept
    : bytes_(std::exchange(other.bytes_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      room_(std::exchange(other.room_, 0)) {}

absl::Status LargeText::append(std::string_view piece) {
  if (piece.empty()) return absl::OkStatus();
  if (piece.size() > room_ - size_) {
    std::size_t room = std::max(kFirstBytes, room_ * 2);
    while (room - size_ < piece.size()) room *= 2;
    void* const bytes = bytes_ == nullptr
                            ? ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                            : ::mremap(bytes_, room_, room, MREMAP_MAYMOVE);
    if (bytes == MAP_FAILED) return errno_status(errno, fmt::format("no memory for a text of {} bytes", room));
    bytes_ = static_cast<char*>(bytes);
    room_ = room;
  }
  std::memcpy(bytes_ + size_, piece.data(), piece.size());
  size_ += piece.size();
  return absl::OkStatus();
}

}  // namespace orla::base
