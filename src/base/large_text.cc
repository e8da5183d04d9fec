#include "base/large_text.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

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

void LargeText::append(std::string_view piece) {
  if (piece.empty()) return;
  if (piece.size() > room_ - size_) {
    std::size_t room = std::max(kFirstBytes, room_ * 2);
    while (room - size_ < piece.size()) room *= 2;
    void* const bytes = bytes_ == nullptr
                            ? ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                            : ::mremap(bytes_, room_, room, MREMAP_MAYMOVE);
    if (bytes == MAP_FAILED) throw std::bad_alloc();
    bytes_ = static_cast<char*>(bytes);
    room_ = room;
  }
  std::memcpy(bytes_ + size_, piece.data(), piece.size());
  size_ += piece.size();
}

}  // namespace orla::base
