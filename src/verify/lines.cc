#include "verify/lines.h"

namespace orla::verify {
namespace {
constexpr std::size_t kReadBytes = 1 << 18;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
}  // namespace

absl::StatusOr<bool> Lines::read_more() {
  if (at_end_) return false;
  buffer_.erase(0, at_);
  at_ = 0;
  const std::size_t kept = buffer_.size();
  buffer_.resize(kept + kReadBytes);
  const absl::StatusOr<std::size_t> n = source_->read(std::span(buffer_.data() + kept, kReadBytes));
  if (!n.ok()) {
    buffer_.resize(kept);
    return n.status();
  }
  buffer_.resize(kept + *n);
  at_end_ = *n == 0;
  return !at_end_;
}

absl::StatusOr<bool> Lines::next(std::string_view& line) {
  line = {};
  too_long_ = false;
  while (at_start_ && buffer_.size() < kByteOrderMark.size()) {
    const absl::StatusOr<bool> more = read_more();
    if (!more.ok()) return more.status();
    if (!*more) break;
  }
  if (at_start_ && buffer_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  at_start_ = false;

  std::size_t from = at_;
  std::size_t newline = std::string::npos;
  while ((newline = buffer_.find('\n', from)) == std::string::npos) {
    // Of a line that is too long anyway, only what may be the \r of its end is of interest.
    if (buffer_.size() - at_ > kMaxLineBytes + 1) {
      too_long_ = true;
      at_ = buffer_.size();
    }
    from = buffer_.size() - at_;  // where the new bytes will be
    const absl::StatusOr<bool> more = read_more();
    if (!more.ok()) return more.status();
    if (*more) continue;
    if (at_ == buffer_.size() && !too_long_) return false;
    newline = buffer_.size();
    break;
  }
  std::string_view whole(buffer_.data() + at_, newline - at_);
  at_ = std::min(newline + 1, buffer_.size());
  if (whole.ends_with('\r')) whole.remove_suffix(1);
  if (whole.size() > kMaxLineBytes) too_long_ = true;
  if (!too_long_) line = whole;
  return true;
}

}  // namespace orla::verify
