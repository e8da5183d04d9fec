// A text that grows, may be large, and gives all its memory back to the system at the end of its life: where many
// threads keep large strings for a moment, an allocator keeps the memory of them for each.
#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"

namespace orla::base {

// Not thread-safe.
class LargeText {
 public:
  LargeText() = default;
  ~LargeText();
  LargeText(const LargeText&) = delete;
  LargeText& operator=(const LargeText&) = delete;
  LargeText(LargeText&& other) noexcept;
  LargeText& operator=(LargeText&&) = delete;

  // RESOURCE_EXHAUSTED: the system has no memory for it; nothing was appended then.
  absl::Status append(std::string_view piece);
  std::size_t size() const { return size_; }
  // Valid until the next append().
  std::string_view view() const { return {bytes_, size_}; }

 private:
  char* bytes_ = nullptr;  // mapped, of `room_` bytes
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};

}  // namespace orla::base
