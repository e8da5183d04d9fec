// Cuts a source of bytes into blocks of whole lines.
//
// A line ends with \n or \r\n; the last one may lack it. A UTF-8 byte order mark at the very start is passed over.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/byte_source.h"
#include "model/batch.h"

namespace orla::ingest {

// Some lines, with the memory they are in, which is used again. Not copyable.
struct LineBlock {
  // At least this many bytes can be read after the lines (their values mean nothing).
  static constexpr std::size_t kSlackBytes = 64;

  std::string_view lines;  // whole, each with its \n (the file's last line has one here even if it lacks it)
  bool too_long = false;   // instead of lines: one line over kMaxLineBytes, which has been passed over
  bool is_last = false;    // nothing follows
  model::Position at;      // of the first line
  model::Position after;   // of what follows
  double progress = -1;    // of the source, after this block was read

  // Where the input stands when `bytes` of the lines, which are `rows` lines, are done with.
  model::Position position(std::size_t bytes, std::uint64_t rows) const {
    if (bytes == lines.size()) return after;  // the end of the last line may not be in the file
    return {at.offset + bytes, at.row + rows};
  }

 private:
  friend class LineBlocks;
  void reserve(std::size_t bytes, std::size_t used);
  std::unique_ptr<char[]> memory_;
  std::size_t capacity_ = 0;  // kSlackBytes and one \n not counted
};

// Not thread-safe.
class LineBlocks {
 public:
  static constexpr std::size_t kUsualBytes = 2 * 1024 * 1024;

  // `block_bytes`: about as much is in a block; > 0.
  explicit LineBlocks(std::unique_ptr<base::ByteSource> source, std::size_t block_bytes = kUsualBytes);

  // Overwrites `block` with the lines at the position; without any only as the last one. An error means that the next
  // line cannot be read, and comes again at every further call; the lines before it have been given.
  absl::Status next(LineBlock& block);
  // All of the newest block but its first `bytes`, which are `rows` lines, comes again.
  void give_back(const LineBlock& block, std::size_t bytes, std::uint64_t rows);
  // Goes on from there, which is not before the present position.
  absl::Status go_to(const model::Position& position);
  // After the blocks that were given.
  const model::Position& position() const { return position_; }

 private:
  absl::Status fill(LineBlock& block, std::size_t& have, std::size_t target);
  absl::Status pass_over_long_line(LineBlock& block, std::size_t have);

  std::unique_ptr<base::ByteSource> source_;
  std::size_t block_bytes_;
  std::string carry_;  // read, and in no block yet
  bool begun_ = false;
  bool at_eof_ = false;
  absl::Status failure_;
  model::Position position_;
};

// How many \n are in it.
std::size_t count_lines(std::string_view text);

}  // namespace orla::ingest
