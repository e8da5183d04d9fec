#include "ingest/line_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "ingest/input.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingest/line_blocks.cc"
#include "hwy/foreach_target.h"  // compiles what is between HWY_BEFORE_NAMESPACE and HWY_ONCE for each instruction set
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace orla::ingest::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

std::size_t CountLines(const char* text, std::size_t size) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto newline = hn::Set(d, '\n');
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text);
  std::size_t count = 0;
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes) count += hn::CountTrue(d, hn::Eq(hn::LoadU(d, bytes + i), newline));
  for (; i < size; ++i) count += text[i] == '\n' ? 1 : 0;
  return count;
}

}  // namespace orla::ingest::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orla::ingest {

namespace {
// So many bytes without \n cannot be a line of kMaxLineBytes and \r.
constexpr std::size_t kTooManyBytes = kMaxLineBytes + 2;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
}  // namespace

HWY_EXPORT(CountLines);
std::size_t count_lines(std::string_view text) { return HWY_DYNAMIC_DISPATCH(CountLines)(text.data(), text.size()); }

void LineBlock::reserve(std::size_t bytes, std::size_t used) {
  if (bytes <= capacity_) return;
  auto larger = std::make_unique_for_overwrite<char[]>(bytes + 1 + kSlackBytes);
  if (used > 0) std::memcpy(larger.get(), memory_.get(), used);
  memory_ = std::move(larger);
  capacity_ = bytes;
}

LineBlocks::LineBlocks(std::unique_ptr<base::ByteSource> source, std::size_t block_bytes)
    : source_(std::move(source)), block_bytes_(block_bytes) {}

// Reads until the block's memory holds `target` bytes, `have` of which it has, or the source ends.
absl::Status LineBlocks::fill(LineBlock& block, std::size_t& have, std::size_t target) {
  block.reserve(target, have);
  while (have < target && !at_eof_) {
    const absl::StatusOr<std::size_t> n = source_->read(std::span(block.memory_.get() + have, target - have));
    if (!n.ok()) return n.status();
    have += *n;
    at_eof_ = *n == 0;
  }
  return absl::OkStatus();
}

absl::Status LineBlocks::next(LineBlock& block) {
  block.lines = {};
  block.too_long = false;
  block.is_last = false;
  std::size_t have = carry_.size();
  block.reserve(have, 0);
  if (have > 0) std::memcpy(block.memory_.get(), carry_.data(), have);
  carry_.clear();
  std::size_t begin = 0;
  std::size_t target = std::max(block_bytes_, have);
  if (!begun_) target = std::max(target, kByteOrderMark.size());
  for (;;) {
    if (failure_.ok()) failure_ = fill(block, have, target);
    const char* const text = block.memory_.get();
    if (!begun_) {
      begun_ = true;
      if (std::string_view(text, have).starts_with(kByteOrderMark)) {
        begin = kByteOrderMark.size();
        position_.offset = begin;
      }
    }
    block.at = position_;
    block.progress = source_->progress();
    const void* newline = have == begin ? nullptr : memrchr(text + begin, '\n', have - begin);
    std::size_t end =
        newline == nullptr ? begin : static_cast<std::size_t>(static_cast<const char*>(newline) + 1 - text);
    if (end == begin) {
      if (have - begin >= kTooManyBytes) return pass_over_long_line(block, have - begin);
      if (!failure_.ok()) return failure_;
      if (!at_eof_) {
        target = have + std::max<std::size_t>(kTooManyBytes, have);
        continue;
      }
    }
    position_.offset += end - begin;
    if (failure_.ok() && at_eof_ && end < have && have - end < kTooManyBytes) {  // the last line, without its end
      position_.offset += have - end;
      block.memory_[have++] = '\n';
      end = have;
    }
    if (failure_.ok()) carry_.assign(text + end, have - end);
    block.lines = std::string_view(text + begin, end - begin);
    position_.row += count_lines(block.lines);
    block.after = position_;
    block.is_last = failure_.ok() && at_eof_ && carry_.empty();
    return absl::OkStatus();
  }
}

// `have` bytes of the line are known to have no \n in them.
absl::Status LineBlocks::pass_over_long_line(LineBlock& block, std::size_t have) {
  std::uint64_t passed = have;
  while (failure_.ok() && !at_eof_) {
    std::size_t more = 0;
    failure_ = fill(block, more, std::max(block_bytes_, kTooManyBytes));
    if (!failure_.ok() && std::memchr(block.memory_.get(), '\n', more) == nullptr) return failure_;
    const void* newline = more == 0 ? nullptr : std::memchr(block.memory_.get(), '\n', more);
    if (newline == nullptr) {
      passed += more;
      continue;
    }
    const auto size = static_cast<std::size_t>(static_cast<const char*>(newline) + 1 - block.memory_.get());
    passed += size;
    carry_.assign(block.memory_.get() + size, more - size);
    break;
  }
  position_.offset += passed;
  ++position_.row;
  block.too_long = true;
  block.after = position_;
  block.is_last = failure_.ok() && at_eof_ && carry_.empty();
  return absl::OkStatus();
}

void LineBlocks::give_back(const LineBlock& block, std::size_t bytes, std::uint64_t rows) {
  const model::Position from = block.position(bytes, rows);
  carry_.insert(0, block.lines.substr(bytes, static_cast<std::size_t>(block.after.offset - from.offset)));
  position_ = from;
}

absl::Status LineBlocks::go_to(const model::Position& position) {
  if (position.offset < position_.offset) {
    return absl::InvalidArgumentError(
        fmt::format("cannot go back from byte {} to byte {}", position_.offset, position.offset));
  }
  const std::uint64_t distance = position.offset - position_.offset;
  const auto held = static_cast<std::size_t>(std::min<std::uint64_t>(distance, carry_.size()));
  carry_.erase(0, held);
  begun_ = begun_ || distance > 0;
  position_ = position;
  if (distance == held) return absl::OkStatus();
  return source_->skip(distance - held);
}

}  // namespace orla::ingest
#endif
