#include "ingest/line_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "ingest/input.h"

namespace orla::ingest {

namespace {
constexpr std::size_t kBufferBytes = 256 * 1024;
static_assert(kBufferBytes >= 2 * kMaxLineBytes);
// So many bytes without \n cannot be a line of kMaxLineBytes and \r.
constexpr std::size_t kTooManyBytes = kMaxLineBytes + 2;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
}  // namespace

LineReader::LineReader(std::unique_ptr<base::ByteSource> source)
    : source_(std::move(source)), buffer_(std::make_unique_for_overwrite<char[]>(kBufferBytes + kSlackBytes)) {}

absl::Status LineReader::read_more() {
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    scanned_ -= begin_;
    end_ -= begin_;
    begin_ = 0;
  }
  absl::StatusOr<std::size_t> n = source_->read(std::span(buffer_.get() + end_, kBufferBytes - end_));
  if (!n.ok()) return n.status();
  end_ += *n;
  at_eof_ = *n == 0;
  return absl::OkStatus();
}

absl::StatusOr<LineReader::Block> LineReader::next() {
  while (position_.offset == 0 && end_ - begin_ < kByteOrderMark.size() && !at_eof_) {
    if (absl::Status s = read_more(); !s.ok()) return s;
  }
  if (position_.offset == 0 && std::string_view(buffer_.get() + begin_, end_ - begin_).starts_with(kByteOrderMark)) {
    begin_ = scanned_ = begin_ + kByteOrderMark.size();
    position_.offset = kByteOrderMark.size();
  }
  for (;;) {
    const void* newline = memrchr(buffer_.get() + scanned_, '\n', end_ - scanned_);
    if (newline != nullptr) {
      const auto size = static_cast<std::size_t>(static_cast<const char*>(newline) + 1 - (buffer_.get() + begin_));
      return Block{std::string_view(buffer_.get() + begin_, size)};
    }
    scanned_ = end_;
    if (at_eof_) {
      if (begin_ == end_) return Block{};
      // kTooManyBytes leave room for it.
      buffer_[end_++] = '\n';
      added_newline_ = true;
      return Block{std::string_view(buffer_.get() + begin_, end_ - begin_)};
    }
    if (end_ - begin_ >= kTooManyBytes) return pass_over_long_line();
    if (absl::Status s = read_more(); !s.ok()) return s;
  }
}

absl::StatusOr<LineReader::Block> LineReader::pass_over_long_line() {
  std::uint64_t passed = 0;
  for (;;) {
    const void* newline = std::memchr(buffer_.get() + begin_, '\n', end_ - begin_);
    const std::size_t size =
        newline == nullptr ? end_ - begin_
                           : static_cast<std::size_t>(static_cast<const char*>(newline) + 1 - (buffer_.get() + begin_));
    passed += size;
    begin_ += size;
    scanned_ = begin_;
    if (newline != nullptr || at_eof_) break;
    if (absl::Status s = read_more(); !s.ok()) return s;
  }
  position_.offset += passed;
  ++position_.row;
  return Block{{}, true};
}

void LineReader::consume(std::size_t bytes, std::uint64_t rows) {
  begin_ += bytes;
  scanned_ = std::max(scanned_, begin_);
  position_.offset += bytes;
  position_.row += rows;
  if (added_newline_ && begin_ == end_) {
    --position_.offset;
    added_newline_ = false;
  }
}

absl::Status LineReader::go_to(const model::Position& position) {
  if (position.offset < position_.offset) {
    return absl::InvalidArgumentError(
        fmt::format("cannot go back from byte {} to byte {}", position_.offset, position.offset));
  }
  const std::uint64_t distance = position.offset - position_.offset;
  const std::uint64_t held = std::min<std::uint64_t>(distance, end_ - begin_ - (added_newline_ ? 1 : 0));
  begin_ += held;
  scanned_ = std::max(scanned_, begin_);
  if (added_newline_ && begin_ + 1 == end_) {
    --end_;
    scanned_ = begin_;
    added_newline_ = false;
  }
  position_ = position;
  if (distance == held) return absl::OkStatus();
  return source_->skip(distance - held);
}

}  // namespace orla::ingest
