// Cuts a source of bytes into lines, many at a time.
//
// A line ends with \n or \r\n; the last one may lack it. A UTF-8 byte order mark at the very start is passed over.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/byte_source.h"
#include "model/batch.h"

namespace orla::ingest {

// Not thread-safe.
class LineReader {
 public:
  // At least this many bytes can be read after a block's end (their values mean nothing).
  static constexpr std::size_t kSlackBytes = 64;

  struct Block {
    std::string_view lines;  // whole lines, each with its \n (the file's last line has one here even if it lacks it)
    bool too_long = false;   // instead of lines: one line over kMaxLineBytes, which has been consumed
    bool at_end() const { return lines.empty() && !too_long; }
  };

  explicit LineReader(std::unique_ptr<base::ByteSource> source);

  // The lines at the position, at least one of them; the view holds until the next call. An error means that the next
  // line cannot be read; the lines before it have been given.
  absl::StatusOr<Block> next();
  // The first `bytes` of the block, which are `rows` lines, are done with.
  void consume(std::size_t bytes, std::uint64_t rows);
  // Goes on from there, which is not before the present position.
  absl::Status go_to(const model::Position& position);
  // After what was consumed.
  const model::Position& position() const { return position_; }
  double progress() const { return source_->progress(); }

 private:
  absl::Status read_more();
  absl::StatusOr<Block> pass_over_long_line();

  std::unique_ptr<base::ByteSource> source_;
  std::unique_ptr<char[]> buffer_;
  std::size_t begin_ = 0;    // of what is not consumed
  std::size_t end_ = 0;      // of what was read
  std::size_t scanned_ = 0;  // no \n in [begin_, scanned_)
  bool at_eof_ = false;
  bool added_newline_ = false;
  model::Position position_;
};

}  // namespace orla::ingest
